// SPDX-License-Identifier: GPL-2.0
/* roce_out.h describes how to use these functions. */
#define _GNU_SOURCE
#include "crc.h"
#include "roce_out.h"

bool no_icrc;
uint32_t mark;
bool summed;
uint32_t joined = 1;

/* ---- the ICRC (Documentation/wire.rst) ---- */

static uint8_t masked[48];		/* IP and UDP header, with ones in fields that may change */
static size_t masked_size;

/*
 * Build the headers that the kernel puts before a datagram of an unconnected socket.  The IPv4
 * identification is 0 as long as DF is set.
 */
static void headers_init(const struct sockaddr_storage *from, const struct sockaddr_storage *to)
{
	const struct sockaddr_in6 *from6 = (const void *)from, *to6 = (const void *)to;
	const struct sockaddr_in *from4 = (const void *)from, *to4 = (const void *)to;
	uint8_t *udp;

	memset(masked, 0xff, sizeof(masked));
	if (to->ss_family == AF_INET) {
		masked[0] = 0x45;
		memcpy(masked + 4, "\0\0\x40\0", 4);
		masked[9] = IPPROTO_UDP;
		memcpy(masked + 12, &from4->sin_addr, 4);
		memcpy(masked + 16, &to4->sin_addr, 4);
		udp = masked + 20;
	} else {
		masked[0] = 0x6f;
		masked[6] = IPPROTO_UDP;
		memcpy(masked + 8, &from6->sin6_addr, 16);
		memcpy(masked + 24, &to6->sin6_addr, 16);
		udp = masked + 40;
	}
	/* the port has the same offset in both address families */
	memcpy(udp, &from4->sin_port, 2);
	memcpy(udp + 2, &to4->sin_port, 2);
	masked_size = udp + 8 - masked;
}

static uint32_t icrc(const uint8_t *packet, size_t size)
{
	uint16_t udp_len = size + ICRC + 8, ip_len = masked_size == 28 ? udp_len + 20 : udp_len;
	uint8_t head[8] = { 255, 255, 255, 255, 255, 255, 255, 255 }, bth[BTH];
	uint32_t crc = crc_of(~0u, head, sizeof(head));

	ip_len = htobe16(ip_len);
	udp_len = htobe16(udp_len);
	memcpy(masked + (masked_size == 28 ? 2 : 4), &ip_len, 2);
	memcpy(masked + masked_size - 4, &udp_len, 2);
	memcpy(bth, packet, BTH);
	bth[4] = 0xff;
	crc = crc_of(crc, masked, masked_size);
	crc = crc_of(crc, bth, BTH);
	return ~crc_of(crc, packet + BTH, size - BTH);
}

/* ---- the socket ---- */

static int sock;
struct sockaddr_storage peer;
static socklen_t peer_size;

/* Messages for sendmmsg(): each is one packet, or a UDP GSO batch of several packets */
static struct message {
	uint8_t *bytes;
	size_t size, each;
	unsigned int packets;
	bool closed;
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control;
} messages[MESSAGES];

static unsigned int waiting;

/* Send packets to @address, from UDP port @port, or from any port if it is 0. */
void out_open(const char *address, uint16_t port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST }, *list;
	struct sockaddr_storage me;
	socklen_t size = sizeof(me);
	int error, one = 1, probe, buffer = 4 << 20, discover = IP_PMTUDISC_DO;
	unsigned int i;

	for (i = 0; i < MESSAGES; i++) {
		/* room for one more packet: post() may have to move it to the next batch */
		messages[i].bytes = malloc((joined + 1) * (MAX_PACKET + ICRC));
		if (!messages[i].bytes)
			err(1, "malloc");
	}
	error = getaddrinfo(address, PORT, &hints, &list);
	if (error)
		errx(2, "%s: %s", address, gai_strerror(error));
	memcpy(&peer, list->ai_addr, list->ai_addrlen);
	peer_size = list->ai_addrlen;
	freeaddrinfo(list);
	/* find the source address of packets to the peer */
	probe = socket(peer.ss_family, SOCK_DGRAM, 0);
	sock = socket(peer.ss_family, SOCK_DGRAM, 0);
	if (probe < 0 || sock < 0 || connect(probe, (void *)&peer, peer_size) ||
	    getsockname(probe, (void *)&me, &size))
		err(1, "%s", address);
	close(probe);
	((struct sockaddr_in *)&me)->sin_port = htobe16(port);
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	if (!no_icrc && !summed &&
	    setsockopt(sock, peer.ss_family == AF_INET ? SOL_SOCKET : SOL_UDP,
		       peer.ss_family == AF_INET ? SO_NO_CHECK : UDP_NO_CHECK6_TX, &one, sizeof(one)))
		err(1, "no checksum");
	if (peer.ss_family == AF_INET)
		setsockopt(sock, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
	if (bind(sock, (void *)&me, size) || getsockname(sock, (void *)&me, &size))
		err(1, "port %u", port);
	headers_init(&me, &peer);
}

void flush(void)
{
	struct mmsghdr heads[MESSAGES] = {};
	struct iovec pieces[MESSAGES];
	struct cmsghdr *cmsg;
	unsigned int i, done;
	int sent;

	for (i = 0; i < waiting; i++) {
		struct msghdr *head = &heads[i].msg_hdr;
		struct message *m = &messages[i];

		pieces[i] = (struct iovec) { m->bytes, m->size };
		*head = (struct msghdr) { .msg_name = &peer, .msg_namelen = peer_size,
					  .msg_iov = &pieces[i], .msg_iovlen = 1 };
		if (m->packets > 1) {
			head->msg_control = m->control.bytes;
			head->msg_controllen = sizeof(m->control);
			cmsg = CMSG_FIRSTHDR(head);
			cmsg->cmsg_level = SOL_UDP;
			cmsg->cmsg_type = UDP_SEGMENT;
			cmsg->cmsg_len = CMSG_LEN(sizeof(uint16_t));
			memcpy(CMSG_DATA(cmsg), &(uint16_t) { m->each }, sizeof(uint16_t));
		}
	}
	for (done = 0; done < waiting; done += sent) {
		sent = sendmmsg(sock, heads + done, waiting - done, 0);
		if (sent < 0 && errno != ENOBUFS)
			err(1, "sendmmsg");
		if (sent < 0)
			sent = 0;
	}
	for (i = 0; i < waiting; i++) {
		messages[i].size = 0;
		messages[i].packets = 0;
		messages[i].closed = false;
	}
	waiting = 0;
}

/* Return: the place of the next packet, BTH to pad, MAX_PACKET bytes; valid until post(). */
uint8_t *room(void)
{
	struct message *m = waiting ? &messages[waiting - 1] : NULL;

	if (!m || m->closed || m->packets == joined) {
		if (waiting == MESSAGES)
			flush();
		m = &messages[waiting++];
	}
	return m->bytes + m->size;
}

/* Send the packet that was written to room().  The packet may wait for others until flush(). */
void post(uint8_t *packet, size_t size)
{
	struct message *m = &messages[waiting - 1];
	uint32_t end = htole32(no_icrc ? mark : icrc(packet, size));
	uint8_t *place;

	memcpy(packet + size, &end, ICRC);
	size += ICRC;
	if (m->packets && size > m->each) {
		/* a batch cannot continue with a longer packet */
		m->closed = true;
		place = room();
		memcpy(place, packet, size);
		m = &messages[waiting - 1];
	}
	if (!m->packets)
		m->each = size;
	m->closed = size < m->each;
	m->size += size;
	m->packets++;
}
