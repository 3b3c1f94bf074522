/* SPDX-License-Identifier: GPL-2.0 */
/* A part of raw.c: Ethernet frames, and flow steering rules that each match one field of them. */
#ifndef RAW_FRAME_H
#define RAW_FRAME_H

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#define TYPE		0x88b5	/* EtherType for experiments (IEEE 802) */
#define UDP4_HEADERS	(ETH_HLEN + 20 + 8)
#define VLAN_TYPE	0x8100

struct frame {
	size_t len;
	uint8_t bytes[4096];
};

/* Fields for frame_udp4() and frame_ip(); except for the MACs, zero selects a default. */
struct fields {
	const uint8_t *dmac, *smac;
	uint16_t vlan;
	bool v6;
	uint8_t src, dst;	/* last byte of the address */
	uint8_t proto, tos, ttl;
	uint32_t label;
	uint16_t sport, dport;
};

enum field {
	DMAC, SMAC, ETHERTYPE, VLAN, SRC4, DST4, PROTO4, TOS4, TTL4, SRC6, DST6, LABEL6, NEXT6,
	CLASS6, HOPS6, UDP_SRC, UDP_DST, TCP_DST, FIELDS,
};

struct frame frame_plain(const uint8_t *dmac, const uint8_t *smac, size_t len, uint32_t seed);
void frame_tag(struct frame *f, uint16_t tci);
bool frame_is_ours(const struct frame *f);
struct frame frame_udp4(const struct fields *x);
bool udp4_sums_hold(const uint8_t *bytes, size_t len);
const char *field_name(int field);
struct frame field_frame(int field, bool other, const uint8_t *dmac, const uint8_t *smac);
size_t field_spec(int field, uint8_t *to);

#endif /* RAW_FRAME_H */
