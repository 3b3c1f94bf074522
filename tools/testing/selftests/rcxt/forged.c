// SPDX-License-Identifier: GPL-2.0
/* forged.h describes these functions. */
#include <arpa/inet.h>

#include "forged.h"

#define PORT	4791
#define CAPS	0x0d		/* PRESENT, NO_ICRC_OK, NO_ICRC */

void be32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
}

void be64(uint8_t *p, uint64_t v)
{
	be32(p, v >> 32);
	be32(p + 4, v);
}

uint32_t forged_packet(uint8_t *p, const struct forged *f)
{
	uint32_t size = FORGED_BTH + FORGED_RXETH + f->more + FORGED_ICRC;
	uint8_t *x = p + FORGED_BTH;

	must(size <= FORGED_MAX);
	memset(p, 0, size);
	be32(p, (uint32_t)f->opcode << 24 | 0x40ffff);
	be32(p + 4, CAPS << 24 | f->to->qpn);
	be32(x, f->to->key);
	be32(x + 4, job);
	be32(x + 8, f->to_rcxt);
	be32(x + 12, f->to_rcxt >> 32);
	be32(x + 16, f->tid);
	be32(x + 20, f->total);
	be32(x + 28, f->length << 16 | f->segment);
	be64(x + 32, f->pvo);
	be32(x + 40, (uint32_t)f->flags << 24 | f->from->qpn);
	be32(x + 44, f->from->key);
	be32(x + 48, f->from_rcxt);
	be32(x + 52, f->from_rcxt >> 32);
	return size;
}

int forged_socket(const union ibv_gid *gid)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	memcpy(&at.sin_addr, gid->raw + 12, 4);
	must(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

void forged_send(int fd, const uint8_t *p, uint32_t size)
{
	if (send(fd, p, size, 0) < 0)
		usleep(100);
}
