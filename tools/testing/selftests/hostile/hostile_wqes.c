// SPDX-License-Identifier: GPL-2.0
/*
 * Send requests with one changed field: each opcode, each bit of the keys, and extreme lengths and
 * addresses.
 *
 *   hostile_wqes DEVICE GID_INDEX
 */
#define _GNU_SOURCE
#include "attack.h"

struct wild {
	const char *field;
	void (*set)(struct nhca_send_wqe *wqe, uint64_t v);
	/* true if the QP must enter the error state */
	bool (*bad)(uint64_t v);
	/* only the responder can detect the invalid field; on UC the responder drops the packet */
	bool at_peer;
	uint64_t from, to;		/* try all values in this range */
	uint64_t also[8];		/* other values to try, up to the first 0 */
};

static bool never(uint64_t v)
{
	(void)v;
	return false;
}

static bool always(uint64_t v)
{
	(void)v;
	return true;
}

static bool bad_opcode(uint64_t v)
{
	return v > NHCA_WR_SEND_WITH_INV;
}

/* number of SGEs that the device has granted to the current pair */
static uint32_t max_sges;

static bool bad_sges(uint64_t v)
{
	return v > max_sges;
}

#define SETTER(name, ...) \
	static void name(struct nhca_send_wqe *wqe, uint64_t v) { __VA_ARGS__; }

SETTER(set_opcode, wqe->opcode = v)
SETTER(set_num_sge, wqe->num_sge = v)
SETTER(set_flag, wqe->flags |= 1u << v)
SETTER(set_inline, wqe->flags |= NHCA_SEND_INLINE; wqe->num_sge = 0; wqe->inline_len = v)
SETTER(set_inline_read, wqe->flags |= NHCA_SEND_INLINE; wqe->num_sge = 0; wqe->inline_len = 8;
       wqe->opcode = v)
SETTER(set_length, wqe->sge[0].length = v)
SETTER(set_addr, wqe->sge[0].addr += v)
SETTER(set_lkey, wqe->sge[0].lkey ^= v)
SETTER(set_lkey_bit, wqe->sge[0].lkey ^= 1u << v)
SETTER(set_remote, wqe->rdma.remote_addr += v)
SETTER(set_rkey_bit, wqe->rdma.rkey ^= 1u << v)
SETTER(set_read_remote, wqe->opcode = NHCA_WR_RDMA_READ; wqe->rdma.remote_addr += v)
SETTER(set_read_length, wqe->opcode = NHCA_WR_RDMA_READ; wqe->sge[0].length = v)
SETTER(set_unaligned, uint32_t rkey = wqe->rdma.rkey; wqe->opcode = NHCA_WR_ATOMIC_FETCH_AND_ADD;
       wqe->sge[0].length = 8; wqe->atomic.remote_addr += v; wqe->atomic.rkey = rkey)
SETTER(set_atomic_length, uint32_t rkey = wqe->rdma.rkey; wqe->opcode = NHCA_WR_ATOMIC_CMP_AND_SWP;
       wqe->sge[0].length = v; wqe->atomic.rkey = rkey)
SETTER(set_invalidate, wqe->opcode = NHCA_WR_SEND_WITH_INV; wqe->ex.invalidate_rkey = v)
SETTER(set_sum, wqe->num_sge = 4; wqe->sge[1] = wqe->sge[0]; wqe->sge[2] = wqe->sge[0];
       wqe->sge[3] = wqe->sge[0]; wqe->sge[0].length = v; wqe->sge[3].length = v)
SETTER(set_ah, wqe->ud.ah_id ^= v)
SETTER(set_ah_bit, wqe->ud.ah_id ^= 1u << v)
SETTER(set_qpn, wqe->ud.remote_qpn = v)
SETTER(set_pkey_index, wqe->ud.pkey_index = v)

static const struct wild wild_connected[] = {
	{ "opcode", set_opcode, bad_opcode, false, 0, 255, {} },
	{ "num_sge", set_num_sge, bad_sges, false, 0, 255, {} },
	{ "flags", set_flag, never, false, 0, 15, {} },
	{ "inline_len", set_inline, always, false, 1, 0,
	  { INLINE * 8, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff } },
	{ "inline READ or atomic", set_inline_read, always, false, NHCA_WR_RDMA_READ,
	  NHCA_WR_ATOMIC_FETCH_AND_ADD, {} },
	{ "length", set_length, always, false, 1, 0,
	  { REGION + 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff } },
	{ "sum of lengths", set_sum, always, false, 1, 0, { 0x7fffffff, 0x80000000, 0xffffffff } },
	{ "local address", set_addr, always, false, 1, 0,
	  { -1, REGION - 63, REGION, 1ULL << 32, 1ULL << 47, 1ULL << 63, -4096 } },
	{ "L_Key", set_lkey, always, false, 1, 0, { 0xffffffff } },
	{ "bits of the L_Key", set_lkey_bit, always, false, 0, 31, {} },
	{ "remote address", set_remote, always, true, 1, 0,
	  { -1, REGION - 63, REGION, 1ULL << 32, 1ULL << 47, 1ULL << 63, -4096 } },
	{ "bits of the R_Key", set_rkey_bit, always, true, 0, 31, {} },
};

static const struct wild wild_rc[] = {
	{ "READ's remote address", set_read_remote, always, false, 1, 0,
	  { -1, REGION - 63, REGION, 1ULL << 32, 1ULL << 63, -4096 } },
	{ "READ's length", set_read_length, always, false, 1, 0,
	  { REGION + 1, 0x7fffffff, 0x80000000, 0xffffffff } },
	{ "unaligned atomic", set_unaligned, always, false, 1, 7, {} },
	{ "atomic's length", set_atomic_length, always, false, 1, 7, { 9, 16, 0x80000008 } },
	{ "R_Key to invalidate", set_invalidate, never, false, 0, 3, { 0xffffffff } },
};

static const struct wild wild_ud[] = {
	{ "opcode", set_opcode, never, false, 0, 255, {} },
	{ "AH", set_ah, always, false, 1, 0, { 0xffffffff, 0x80000000 } },
	{ "bits of the AH", set_ah_bit, always, false, 0, 31, {} },
	{ "QPN", set_qpn, never, false, 0, 3, { 0xffffff, 0x1000000, 0xffffffff } },
	{ "P_Key index", set_pkey_index, never, false, 0, 3, { 0xffff, 0xffffffff } },
	{ "length", set_length, always, false, 1, 0, { 4097, REGION, REGION + 1, 0x80000000, 0xffffffff } },
	{ "num_sge", set_num_sge, bad_sges, false, 0, 255, {} },
};

/* Return: true if the request @wr_id has a completion with an error. */
static bool has_failed(struct end *e, uint32_t from, uint64_t wr_id)
{
	const struct nhca_cqe *cqe;
	uint32_t i;

	for (i = from; i != load(&e->cqr.hdr->prod); i++) {
		cqe = (void *)slot(&e->cqr, i);
		if (cqe->wr_id == wr_id && cqe->status)
			return true;
	}
	return false;
}

static void wild_one(struct end *a, struct end *b, const struct wild *w, uint64_t v)
{
	static uint64_t wr_id = MAGIC + 100;
	double until = now() + PATIENCE;
	uint32_t from;
	char what[128];

	snprintf(what, sizeof(what), "QP type %d, %s %#" PRIx64, a->type, w->field, v);
	connect_ends(a, b);
	post_recv(b, 1, b->buf, 4096 + 64);
	drain(a);
	drain(b);
	from = load(&a->cqr.hdr->prod);
	w->set(good_wqe(a, b, ++wr_id), v);
	publish(a);
	if (w->bad(v) && !(a->type == IBV_QPT_UC && w->at_peer)) {
		wait_broken(a, what);
		if (!has_failed(a, from, wr_id))
			die("%s: no completion with an error", what);
	} else {
		while (load(&a->sqr.hdr->cons) != load(&a->sqr.hdr->prod) && !broken(end_state(a)))
			if (now() > until)
				die("%s: neither done nor in error", what);
	}
	fences_hold(a);
	fences_hold(b);
}

static void wild_table(struct end *a, struct end *b, const struct wild *table, int n)
{
	const struct wild *w;
	uint64_t v;
	int i;

	for (w = table; w < table + n; w++) {
		for (v = w->from; v <= w->to; v++)
			wild_one(a, b, w, v);
		for (i = 0; i < COUNT(w->also) && w->also[i]; i++)
			wild_one(a, b, w, w->also[i]);
	}
}

static void wild_fields(void)
{
	struct end a, b;
	int t;

	for (t = 0; t < COUNT(types); t++) {
		pair_make(&a, &b, types[t]);
		max_sges = a.cap.max_send_sge;
		if (types[t] == IBV_QPT_UD)
			wild_table(&a, &b, wild_ud, COUNT(wild_ud));
		else
			wild_table(&a, &b, wild_connected, COUNT(wild_connected));
		if (types[t] == IBV_QPT_RC)
			wild_table(&a, &b, wild_rc, COUNT(wild_rc));
		pair_destroy(&a, &b);
	}
}

static const struct attack attacks[] = {
	{ .name = "invalid values in every field of a send request", .run = wild_fields },
};

int main(int argc, char **argv)
{
	return attacks_main(argc, argv, attacks, COUNT(attacks));
}
