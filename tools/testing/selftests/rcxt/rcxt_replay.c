// SPDX-License-Identifier: GPL-2.0
/*
 * rcxt_replay: records RoCE packets and sends them again.
 *
 *   rcxt_replay record IF FILE [SECONDS]	all RoCE packets (UDP port 4791) that IF sends and
 *						receives, until SIGINT, SIGTERM, or the time is over
 *   rcxt_replay replay IF FILE [FROM]		send them out of IF unchanged; with FROM only those
 *						that have this source MAC address
 *
 * FILE is a pcap file of the frames as they are on a wire: GSO batches are cut into packets, and
 * checksums that the kernel leaves to the netdev are computed.  Both commands print the number of
 * packets.  Recording fails if the kernel had no room for a packet, replaying if a packet was not
 * sent.  Before Linux 6.2 batches cannot be recorded, so first run ethtool -K IF
 * tx-udp-segmentation off.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROCE_PORT	4791
#define MAX_FRAME	(65536 + ETH_HLEN)
#define BATCH		32
#define ROOM		(64 << 20)	/* bytes for frames that wait in the socket */
#define WAKE_US		100000	/* interval between checks for the end */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4	5	/* in <linux/virtio_net.h> since 6.2 */
#endif
#define PCAP_MAGIC	0xa1b2c3d4
#define PCAP_ETHERNET	1

struct pcap_file {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, limit, link;
};

struct pcap_frame {
	uint32_t seconds, microseconds, held, length;
};

static FILE *file;
static const char *file_name;
static uint64_t packets;
static volatile sig_atomic_t over;

static int sock_open(const char *netdev, uint16_t protocol)
{
	struct sockaddr_ll place = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol),
				     .sll_ifindex = if_nametoindex(netdev) };
	/* with protocol 0, so that no frame arrives before bind() */
	int sock = socket(AF_PACKET, SOCK_RAW, 0);

	if (sock < 0 || !place.sll_ifindex || bind(sock, (void *)&place, sizeof(place)))
		err(1, "%s", netdev);
	return sock;
}

/* ---- recording ---- */

static void put(const void *what, size_t size)
{
	if (fwrite(what, size, 1, file) != 1)
		err(1, "%s", file_name);
}

static void put_frame(const uint8_t *frame, size_t size)
{
	struct pcap_frame head = { .held = size, .length = size };
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	head.seconds = t.tv_sec;
	head.microseconds = t.tv_nsec / 1000;
	put(&head, sizeof(head));
	put(frame, size);
	packets++;
}

static uint32_t sum(uint32_t begin, const uint8_t *p, size_t size)
{
	for (; size > 1; p += 2, size -= 2)
		begin += p[0] << 8 | p[1];
	if (size)
		begin += p[0] << 8;
	return (begin & 0xffff) + (begin >> 16);
}

static uint16_t folded(uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return htons(~total);
}

/* Return: the offset of the UDP header of a RoCE packet, or 0. */
static size_t udp_of(const uint8_t *frame, size_t size)
{
	const struct ethhdr *eth = (const void *)frame;
	const struct iphdr *ip = (const void *)(eth + 1);
	const struct ip6_hdr *ip6 = (const void *)(eth + 1);
	const struct udphdr *udp;
	size_t at;

	if (size < sizeof(*eth) + sizeof(*ip))
		return 0;
	if (eth->h_proto == htons(ETH_P_IP) && ip->protocol == IPPROTO_UDP)
		at = sizeof(*eth) + ip->ihl * 4;
	else if (eth->h_proto == htons(ETH_P_IPV6) && size >= sizeof(*eth) + sizeof(*ip6) &&
		 ip6->ip6_nxt == IPPROTO_UDP)
		at = sizeof(*eth) + sizeof(*ip6);
	else
		return 0;
	udp = (const void *)(frame + at);
	if (size < at + sizeof(*udp) || udp->dest != htons(ROCE_PORT))
		return 0;
	return at;
}

/* Set lengths, IP ID and checksums of datagram @n of a batch.  @size: bytes of the frame. */
static void complete(uint8_t *frame, size_t udp_at, size_t size, unsigned int n)
{
	struct ip6_hdr *ip6 = (void *)(frame + ETH_HLEN);
	struct udphdr *udp = (void *)(frame + udp_at);
	struct iphdr *ip = (void *)(frame + ETH_HLEN);
	uint16_t length = size - udp_at;
	bool summed = udp->check;
	uint32_t total;

	udp->len = htons(length);
	udp->check = 0;
	if (ip->version == 4) {
		ip->id = htons(ntohs(ip->id) + n);
		ip->tot_len = htons(size - ETH_HLEN);
		ip->check = 0;
		ip->check = folded(sum(0, (void *)ip, ip->ihl * 4));
		total = sum(0, (void *)&ip->saddr, 8);
	} else {
		ip6->ip6_plen = htons(length);
		total = sum(0, (void *)&ip6->ip6_src, 32);
	}
	if (summed)
		udp->check = folded(sum(total + IPPROTO_UDP + length, (void *)udp, length)) ?: 0xffff;
}

/* Record a frame from the socket; cut a batch into packets as the netdev would. */
static void take(uint8_t *frame, size_t size, const struct virtio_net_hdr *how)
{
	uint8_t type = how->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	size_t at = udp_of(frame, size), head = at + sizeof(struct udphdr), from, left;
	static uint8_t single[MAX_FRAME];

	if (!at)
		return;
	if (type == VIRTIO_NET_HDR_GSO_NONE) {
		if (how->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			complete(frame, at, size, 0);
		put_frame(frame, size);
		return;
	}
	if (type != VIRTIO_NET_HDR_GSO_UDP_L4 || !how->gso_size)
		errx(1, "a batch of type %u", type);
	/* the IPv4 identification counts up, as in the kernel */
	for (from = head; from < size; from += left) {
		left = size - from < how->gso_size ? size - from : how->gso_size;
		memcpy(single, frame, head);
		memcpy(single + head, frame + from, left);
		complete(single, at, head + left, (from - head) / how->gso_size);
		put_frame(single, head + left);
	}
}

static void stop(int signal)
{
	over = signal;
}

static void record(const char *netdev, unsigned int seconds)
{
	struct pcap_file head = { PCAP_MAGIC, 2, 4, 0, 0, MAX_FRAME, PCAP_ETHERNET };
	struct sigaction action = { .sa_handler = stop };
	struct tpacket_stats lost = {};
	socklen_t size = sizeof(lost);
	struct timeval wake = { .tv_usec = WAKE_US };
	int one = 1, room = ROOM, sock;
	static uint8_t frame[MAX_FRAME];
	struct virtio_net_hdr how;
	struct iovec pieces[2] = { { &how, sizeof(how) }, { frame, sizeof(frame) } };
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
	ssize_t got;

	file = fopen(file_name, "w");
	if (!file)
		err(1, "%s", file_name);
	put(&head, sizeof(head));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
	sock = sock_open(netdev, ETH_P_ALL);
	if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &wake, sizeof(wake)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		err(1, "setsockopt");
	printf("recording\n");
	for (;;) {
		/* after the end, read the frames that are still in the socket */
		got = recvmsg(sock, &message, over ? MSG_DONTWAIT : 0);
		if (got >= (ssize_t)sizeof(how))
			take(frame, got - sizeof(how), &how);
		else if (over && errno == EAGAIN)
			break;
		else if (got >= 0 || (errno != EINTR && errno != EAGAIN))
			err(1, "%s, packet %" PRIu64, netdev, packets + 1);
	}
	if (fclose(file))
		err(1, "%s", file_name);
	getsockopt(sock, SOL_PACKET, PACKET_STATISTICS, &lost, &size);
	printf("%" PRIu64 " packets recorded, %u frames lost\n", packets, lost.tp_drops);
	if (lost.tp_drops)
		exit(1);
}

/* ---- replaying ---- */

static uint8_t frames[BATCH][MAX_FRAME];

/* Return: bytes of the next frame of @from, or of any sender if it is NULL; 0 at the end. */
static size_t get_frame(uint8_t *frame, const struct ether_addr *from)
{
	struct pcap_frame head;

	while (fread(&head, sizeof(head), 1, file) == 1) {
		if (head.held != head.length || head.held > MAX_FRAME || head.held < ETH_HLEN ||
		    fread(frame, head.held, 1, file) != 1)
			errx(1, "%s: frame %" PRIu64 " is truncated", file_name, packets + 1);
		if (!from || !memcmp(frame + ETH_ALEN, from, ETH_ALEN))
			return head.held;
	}
	return 0;
}

static void send_frames(int sock, struct mmsghdr *heads, unsigned int count)
{
	unsigned int done = 0;
	int sent;

	while (done < count) {
		sent = sendmmsg(sock, heads + done, count - done, 0);
		if (sent < 0 && errno != ENOBUFS)
			err(1, "frame %" PRIu64, packets + done + 1);
		/* the transmit queue is full: try again */
		if (sent < 0)
			usleep(1000);
		else
			done += sent;
	}
	packets += count;
}

static void replay(const char *netdev, const char *text)
{
	struct ether_addr *from = text ? ether_aton(text) : NULL;
	struct mmsghdr heads[BATCH] = {};
	int sock = sock_open(netdev, 0);
	struct iovec pieces[BATCH];
	struct timespec begin, end;
	struct pcap_file head;
	unsigned int count;
	double seconds;

	if (text && !from)
		errx(2, "%s is not a MAC address", text);
	file = fopen(file_name, "r");
	if (!file)
		err(1, "%s", file_name);
	if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != PCAP_MAGIC ||
	    head.link != PCAP_ETHERNET)
		errx(1, "%s is not a pcap file of Ethernet frames", file_name);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (count = 0; count < BATCH; count++) {
			pieces[count].iov_base = frames[count];
			pieces[count].iov_len = get_frame(frames[count], from);
			if (!pieces[count].iov_len)
				break;
			heads[count].msg_hdr.msg_iov = &pieces[count];
			heads[count].msg_hdr.msg_iovlen = 1;
		}
		send_frames(sock, heads, count);
	} while (count == BATCH);
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9;
	printf("%" PRIu64 " packets replayed in %.1f s, %.0f a second\n", packets, seconds,
	       packets / seconds);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4 || argc > 5)
		goto usage;
	file_name = argv[3];
	if (!strcmp(argv[1], "record"))
		record(argv[2], argc > 4 ? atoi(argv[4]) : 0);
	else if (!strcmp(argv[1], "replay"))
		replay(argv[2], argv[4]);
	else
		goto usage;
	return 0;
usage:
	fputs("usage: rcxt_replay record IF FILE [SECONDS] | replay IF FILE [FROM-MAC]\n", stderr);
	return 2;
}
