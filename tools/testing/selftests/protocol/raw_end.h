/* SPDX-License-Identifier: GPL-2.0 */
/* A part of raw.c: the other end of the cable, raw packet QPs, and rules. */
#ifndef RAW_END_H
#define RAW_END_H

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "verbs_test.h"
#include "raw_frame.h"

#ifndef SOL_UDP
#define SOL_UDP		17
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define NEAR_IP		"10.98.0.1"
#define PORT_HOST	7000
#define SLOT		4096	/* bytes of a receive */
#define SLOTS		64
#define NEVER_MS	150	/* a frame that has not arrived after this time was dropped */

struct raw {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;		/* SLOTS receives, and one slot to send from */
	uint32_t posted;
	bool lasts;		/* do not replace a receive that was used */
};

struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[256];
};

#define FLOW(flow, raw, asked) do {						\
	struct rule flow_rule = (asked);					\
	(flow) = ibv_create_flow((raw)->qp, &flow_rule.attr);			\
	if (!(flow))								\
		return fail("ibv_create_flow: %s", strerror(errno));		\
} while (0)

extern int far;		/* AF_PACKET socket on far0 */
extern uint8_t far_mac[ETH_ALEN], near_mac[ETH_ALEN];

int far_socket(int family, int type, int protocol);
bool far_send(const struct frame *f);
bool far_gets(const struct frame *want);
bool far_gets_none(void);
bool raw_post(struct raw *r, uint32_t len);
bool raw_make(struct raw *r, int receives, int access);
bool raw_free(struct raw *r);
bool raw_sent(struct raw *r, const struct frame *f, int pieces, bool inl, enum ibv_wc_status want);
bool raw_send(struct raw *r, const struct frame *f);
bool raw_gets(struct raw *r, const struct frame *want);
bool raw_gets_none(struct raw *r);
void rule_add(struct rule *rule, const void *spec, size_t size);
struct rule rule_none(uint16_t priority, uint32_t flags);
struct rule rule_type(uint16_t type, uint16_t priority, uint32_t flags);
struct rule rule_udp(uint16_t port);

#endif /* RAW_END_H */
