// SPDX-License-Identifier: GPL-2.0
/*
 * peer_mutate: sends mutated copies of the packets of real connections, during their traffic.
 *
 *   peer_mutate -i NETDEV [-n COUNT] [-R PACKETS-A-SECOND] [-m MTU] [-6] [-w] [-k] [-r SEED]
 *
 * It runs on the host of one end of the connections, and uses the packets that this host sends from
 * NETDEV as templates. The program changes up to three things of a copy (bits, capability bits,
 * opcode, length, source address or port, QPN, P_Key, flags of the BTH, extended headers), sets the
 * PSN, corrects the checksums and usually the ICRC, and sends the copy to the same IP address. By
 * default it acts as an off-path attacker that knows addresses and QPNs but no PSN. The PSN is
 * random, but never within WINDOW of the PSN of the connection, because such a packet would count
 * as a packet of the connection. The program ends after COUNT packets or on SIGTERM.
 *
 *   -w	on-path attacker: PSNs that are equal or close to those of the templates
 *   -k	send only acknowledgments, with random capability bits and syndromes
 *   -6	only packets over IPv6
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "crc.h"

#define PORT		4791
#define UDP		8
#define BTH		12
#define ICRC		4
#define TEMPLATES	1024
#define LARGEST		9600
#define BATCH		32
#define WINDOW		0x8000	/* PSNs on each side of the last PSN seen */
#define FLOWS		4096	/* entries of the table of PSNs, by the low bits of the QPN */
#define NO_ICRC		8	/* capability bit: no ICRC, only a UDP checksum */
/* source MAC address of packets sent by this program, which must not become templates */
#define OWN_MAC		"\x02\x6e\x68\x63\x61\x66"

struct frame {
	size_t length;
	uint8_t bytes[LARGEST];
};

static struct frame templates[TEMPLATES], out[BATCH];
static uint32_t held, next_template;
/* Requests and responses to one QP have separate PSNs. */
static uint32_t last_psn[2][FLOWS];
static bool psn_seen[2][FLOWS], on_path, capabilities, only_v6;
static uint64_t state = 1, sent;
static volatile sig_atomic_t stop;

static uint64_t rnd(void)
{
	/* splitmix64: the same seed gives the same numbers */
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static void stopped(int signal)
{
	(void)signal;
	stop = 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static uint32_t get24(const uint8_t *p)
{
	return p[0] << 16 | p[1] << 8 | p[2];
}

static void put24(uint8_t *p, uint32_t v)
{
	p[0] = v >> 16;
	p[1] = v >> 8;
	p[2] = v;
}

/* ---- ICRC and checksums ---- */

static size_t ip_size(const uint8_t *ip)
{
	return *ip >> 4 == 6 ? 40 : 20;
}

/* Compute and store the ICRC, with ones in place of the fields that may change in the network. */
static void icrc_put(uint8_t *ip, size_t size)
{
	size_t udp = ip_size(ip);
	uint8_t head[40 + UDP + BTH], ones[8];
	uint32_t crc;

	memcpy(head, ip, udp + UDP + BTH);
	if (udp == 20) {
		head[1] = head[8] = head[10] = head[11] = 0xff;
	} else {
		head[0] |= 0x0f;
		head[1] = head[2] = head[3] = head[7] = 0xff;
	}
	head[udp + 6] = head[udp + 7] = 0xff;
	head[udp + UDP + 4] = 0xff;
	memset(ones, 0xff, sizeof(ones));
	crc = crc_of(~0u, ones, sizeof(ones));
	crc = crc_of(crc, head, udp + UDP + BTH);
	crc = ~crc_of(crc, ip + udp + UDP + BTH, size - udp - UDP - BTH - ICRC);
	memcpy(ip + size - ICRC, &crc, ICRC);
}

static uint32_t sum_of(uint32_t sum, const uint8_t *p, size_t size)
{
	for (; size > 1; p += 2, size -= 2)
		sum += get16(p);
	return size ? sum + (*p << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static void sums_put(uint8_t *ip, size_t size, bool udp_sum)
{
	size_t udp = ip_size(ip);
	uint32_t sum = IPPROTO_UDP + size - udp;
	uint16_t folded;

	if (udp == 20) {
		put16(ip + 10, 0);
		put16(ip + 10, fold(sum_of(0, ip, 20)));
		sum = sum_of(sum, ip + 12, 8);
	} else {
		sum = sum_of(sum, ip + 8, 32);
		udp_sum = true;
	}
	put16(ip + udp + 6, 0);
	folded = fold(sum_of(sum, ip + udp, size - udp));
	if (udp_sum)
		put16(ip + udp + 6, folded ?: 0xffff);
}

/* ---- templates ---- */

static void template_take(const uint8_t *frame, size_t length, uint16_t gso_size)
{
	const uint8_t *ip = frame + ETH_HLEN, *bth;
	uint16_t type = get16(frame + 12);
	size_t udp = ip_size(ip);
	uint32_t flow, response;

	if ((type != ETH_P_IP && type != ETH_P_IPV6) || (type == ETH_P_IP && *ip != 0x45) ||
	    ip[udp == 20 ? 9 : 6] != IPPROTO_UDP || get16(ip + udp + 2) != PORT ||
	    (only_v6 && udp == 20) || !memcmp(frame + ETH_ALEN, OWN_MAC, ETH_ALEN))
		return;
	/* of packets in a GSO batch, use the first */
	if (gso_size && length > ETH_HLEN + udp + UDP + gso_size)
		length = ETH_HLEN + udp + UDP + gso_size;
	if (length < ETH_HLEN + udp + UDP + BTH + ICRC || length > LARGEST - 64)
		return;
	bth = ip + udp + UDP;
	flow = get24(bth + 5) % FLOWS;
	response = bth[0] >= 0x0d && bth[0] <= 0x12;
	last_psn[response][flow] = get24(bth + 9);
	psn_seen[response][flow] = true;
	templates[next_template].length = length;
	memcpy(templates[next_template].bytes, frame, length);
	next_template = (next_template + 1) % TEMPLATES;
	if (held < TEMPLATES)
		held++;
}

static void templates_take(int fd)
{
	static uint8_t frame[1 << 17];
	const struct virtio_net_hdr *head = (void *)frame;
	struct sockaddr_ll from;
	socklen_t size;
	ssize_t n;
	int i;

	for (i = 0; i < 64; i++) {
		size = sizeof(from);
		n = recvfrom(fd, frame, sizeof(frame), MSG_DONTWAIT, (void *)&from, &size);
		if (n < (ssize_t)sizeof(*head) + ETH_HLEN + 40 + UDP)
			return;
		if (from.sll_pkttype == PACKET_OUTGOING)
			template_take(frame + sizeof(*head), n - sizeof(*head),
				      head->gso_type ? head->gso_size : 0);
	}
}

/* ---- mutations ---- */

static void flip_bits(uint8_t *p, size_t size)
{
	uint32_t flips = 1 + rnd() % 4, bit;

	while (flips--) {
		bit = rnd() % (size * 8);
		p[bit / 8] ^= 1 << bit % 8;
	}
}

static void addresses(uint8_t *ip, size_t udp)
{
	switch (rnd() % 3) {
	case 0:
		/* another source address of the same subnet */
		ip[udp == 20 ? 15 : 23] = rnd();
		break;
	case 1:
		ip[udp == 20 ? 12 : 8] = rnd();
		break;
	default:
		put16(ip + udp, rnd());
	}
}

/* Return: the new size of the packet. */
static size_t resize(size_t size, size_t least, size_t most)
{
	switch (rnd() % 3) {
	case 0:
		size = least + rnd() % (size - least + 1);
		break;
	case 1:
		size += 4 * (rnd() % 16);
		break;
	default:
		size += rnd() % 8;
		size -= size >= least + 4 ? 4 : 0;
	}
	return size > most ? most : size;
}

static bool psn_near(uint32_t response, uint32_t flow, uint32_t psn)
{
	uint32_t away = (psn - last_psn[response][flow]) & 0xffffff;

	return psn_seen[response][flow] && (away < WINDOW || away > 0x1000000 - WINDOW);
}

static void psn_draw(uint8_t *bth)
{
	uint32_t flow = get24(bth + 5) % FLOWS, psn;

	do {
		psn = rnd() & 0xffffff;
	} while (psn_near(0, flow, psn) || psn_near(1, flow, psn));
	put24(bth + 9, psn);
}

static void mutate(struct frame *f, const struct frame *from, size_t largest)
{
	uint8_t *ip = f->bytes + ETH_HLEN, *bth;
	const struct frame *other = &templates[rnd() % held];
	size_t size = from->length - ETH_HLEN, udp, payload;
	uint32_t steps = rnd() % 4, what;
	uint8_t *other_bth;

	*f = *from;
	udp = ip_size(ip);
	bth = ip + udp + UDP;
	if (capabilities) {
		/* an acknowledgment with a random syndrome and random capability bits */
		size = udp + UDP + BTH + 4 + ICRC;
		bth[0] = 0x11;
		bth[1] &= 0xcf;
		bth[4] = (bth[4] & 0xc0) | (rnd() & 0x3f & ~NO_ICRC);
		bth[12] = rnd() & 0x7f;
		steps = 0;
	}
	while (steps--) {
		payload = size - udp - UDP - BTH - ICRC;
		what = rnd() % 10;
		if (what == 0) {
			flip_bits(bth, size - udp - UDP);
		} else if (what == 1) {
			bth[4] = rnd();
		} else if (what == 2) {
			bth[0] = rnd() % 2 ? rnd() : rnd() % 0x18;
		} else if (what == 3) {
			size = resize(size, udp + UDP + BTH + ICRC, largest);
		} else if (what == 4) {
			addresses(ip, udp);
		} else if (what == 5 && other->bytes[12] == f->bytes[12] &&
			   other->bytes[13] == f->bytes[13]) {
			/* the QPN of another connection */
			other_bth = (uint8_t *)other->bytes + ETH_HLEN + udp + UDP;
			memcpy(bth + 5, other_bth + 5, 3);
		} else if (what == 6) {
			put16(bth + 2, rnd());
		} else if (what == 7) {
			bth[1] = rnd();
		} else if (payload) {
			/* RETH, AETH, AtomicETH or the first bytes of the payload */
			flip_bits(bth + BTH, payload > 28 ? 28 : payload);
		}
	}
	if (!on_path)
		psn_draw(bth);
	else if (rnd() % 2)
		put24(bth + 9, get24(bth + 9) + rnd() % 64 - 32);
	put16(udp == 20 ? ip + 2 : ip + 4, udp == 20 ? size : size - 40);
	put16(ip + udp + 4, size - udp);
	/* sometimes the lengths contradict each other */
	if (rnd() % 32 == 0)
		put16(ip + udp + 4, rnd());
	if (rnd() % 8)
		icrc_put(ip, size);
	sums_put(ip, size, bth[4] & NO_ICRC || rnd() % 2);
	memcpy(f->bytes + ETH_ALEN, OWN_MAC, ETH_ALEN);
	f->length = ETH_HLEN + size;
}

static void packets_send(int fd, size_t largest)
{
	struct mmsghdr messages[BATCH] = {};
	struct iovec parts[BATCH];
	int i, n;

	for (i = 0; i < BATCH; i++) {
		mutate(&out[i], &templates[rnd() % held], largest);
		parts[i] = (struct iovec){ out[i].bytes, out[i].length };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(fd, messages, BATCH, 0);
	if (n > 0)
		sent += n;
	else
		usleep(1000);
}

static int packet_socket(const char *netdev, bool receives)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1, room = 4 << 20;
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(netdev),
				  .sll_protocol = receives ? htons(ETH_P_ALL) : 0 };

	if (fd < 0 || !at.sll_ifindex)
		err(1, "%s", netdev);
	if (receives && (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) ||
			 setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room))))
		err(1, "a packet socket");
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)))
		err(1, "bind to %s", netdev);
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t count = ~0ULL, rate = 20000;
	int letter, in, to, mtu = 1500;
	const char *netdev = NULL;
	double begun;

	while ((letter = getopt(argc, argv, "i:n:R:r:m:6wk")) != -1)
		switch (letter) {
		case 'i':
			netdev = optarg;
			break;
		case 'n':
			count = strtoull(optarg, NULL, 0);
			break;
		case 'R':
			rate = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			state = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			mtu = atoi(optarg);
			break;
		case '6':
			only_v6 = true;
			break;
		case 'w':
			on_path = true;
			break;
		case 'k':
			capabilities = true;
			break;
		default:
			errx(2, "see the top of peer_mutate.c");
		}
	if (!netdev || mtu > LARGEST - 64)
		errx(2, "see the top of peer_mutate.c");
	signal(SIGTERM, stopped);
	signal(SIGINT, stopped);
	in = packet_socket(netdev, true);
	to = packet_socket(netdev, false);
	begun = now();
	while (!stop && sent < count) {
		templates_take(in);
		if (!held || sent > (now() - begun) * rate)
			usleep(1000);
		else
			packets_send(to, mtu);
	}
	printf("%" PRIu64 " packets of %u templates\n", sent, held);
	return 0;
}
