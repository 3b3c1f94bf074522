// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: third-party transfers: their packets, and the tid rules of manager, source and target;
 * requests are tested in every state of the source's rCxt.
 */
#include <kunit/test.h>
#include <linux/string.h>

#include "../rcxt/tid.h"
#include "../wire/bth.h"

#define TID	100u
#define TOTAL	640u
#define SEGMENT	64u
#define NUMBER	7u
#define PVO	0x1122334455667788ull
#define DIGEST	0x99aabbccddeeff00ull

/* ---- packets ---- */

/* what follows the RXETH of a third-party request: every byte is different */
static const u8 third_bytes[] = {
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,	/* PVO at the target */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,	/* token */
	0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,	/* GID of the target */
	0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
	0x00, 0x31, 0x32, 0x33, 0x41, 0x42, 0x43, 0x44,	/* reserved, QPN, key */
	0x51, 0x52, 0x53, 0x54, 0x61, 0x62, 0x63, 0x64,	/* rCxt of the target */
	0x71, 0x72, 0x73, 0x74, 0x81, 0x82, 0x83, 0x84,	/* part, number */
};

/* All fields are decoded from the right bytes, and are encoded to the same bytes. */
static void third_known_bytes(struct kunit *test)
{
	static const u8 opcodes[] = { NHCA_RX_THIRD_REQUEST, NHCA_RX_THIRD_CHALLENGE };
	u8 in[NHCA_RXETH_LEN + sizeof(third_bytes)], out[sizeof(in)];
	struct nhca_rxeth x;
	u32 i;

	KUNIT_EXPECT_EQ(test, sizeof(third_bytes), NHCA_RX_THIRD_LEN);
	memset(in, 0x5c, NHCA_RXETH_LEN);
	/* version 0, third party, again, notify the target */
	in[40] = 0x0e;
	memcpy(in + NHCA_RXETH_LEN, third_bytes, sizeof(third_bytes));
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		nhca_rxeth_decode(&x, opcodes[i], in);
		KUNIT_EXPECT_EQ(test, x.notify, NHCA_RX_NOTIFY_THIRD | NHCA_RX_NOTIFY_TARGET);
		KUNIT_EXPECT_EQ(test, x.reply_pvo, 0x0102030405060708ull);
		KUNIT_EXPECT_EQ(test, x.token, 0x1112131415161718ull);
		KUNIT_EXPECT_MEMEQ(test, x.gid, third_bytes + 16, sizeof(x.gid));
		KUNIT_EXPECT_EQ(test, x.target_channel, 0x313233);
		KUNIT_EXPECT_EQ(test, x.target_key, 0x41424344);
		KUNIT_EXPECT_EQ(test, x.target_rcxt.index, 0x51525354);
		KUNIT_EXPECT_EQ(test, x.target_rcxt.key, 0x61626364);
		KUNIT_EXPECT_EQ(test, x.part, 0x71727374);
		KUNIT_EXPECT_EQ(test, x.number, 0x81828384);
		memset(out, 0xa5, sizeof(out));
		KUNIT_EXPECT_EQ(test, nhca_rxeth_encode(&x, opcodes[i], out), sizeof(out));
		KUNIT_EXPECT_MEMEQ(test, in, out, sizeof(in));
		KUNIT_EXPECT_EQ(test, nhca_opinfo(opcodes[i])->hdr_len,
				NHCA_BTH_LEN + sizeof(in));
	}
	memcpy(in + NHCA_RXETH_LEN, third_bytes + 16, NHCA_RX_GID_LEN);
	nhca_rxeth_decode(&x, NHCA_RX_THIRD_WRITE, in);
	KUNIT_EXPECT_MEMEQ(test, x.gid, third_bytes + 16, sizeof(x.gid));
	KUNIT_EXPECT_EQ(test, nhca_rxeth_encode(&x, NHCA_RX_THIRD_WRITE, out), 80);
	KUNIT_EXPECT_MEMEQ(test, in, out, 80);
	/* packets of other kinds do not have the bit: it is ignored, and is not sent */
	nhca_rxeth_decode(&x, NHCA_RX_WRITE, in);
	KUNIT_EXPECT_EQ(test, x.notify, NHCA_RX_NOTIFY_TARGET);
	x.notify |= NHCA_RX_NOTIFY_THIRD;
	nhca_rxeth_encode(&x, NHCA_RX_WRITE, out);
	KUNIT_EXPECT_EQ(test, out[40], 0x06);
}

/* A request names whole packets of the transfer, and notifies the manager. */
static void third_lengths(struct kunit *test)
{
	static const struct {
		u32 total, offset, part;
		u8 notify;
		bool fits;
	} rows[] = {
		{ 640, 0, 640, NHCA_RX_NOTIFY_THIRD, true },
		{ 640, 0, 640, NHCA_RX_NOTIFY_THIRD | NHCA_RX_NOTIFY_TARGET, true },
		{ 640, 0, 640, NHCA_RX_NOTIFY_THIRD | NHCA_RX_NOTIFY_INITIATOR, false },
		{ 640, 0, 640, NHCA_RX_NOTIFY_TARGET, false },
		{ 640, 0, 64, NHCA_RX_NOTIFY_THIRD, true },
		{ 640, 0, 65, NHCA_RX_NOTIFY_THIRD, false },
		{ 640, 0, 0, NHCA_RX_NOTIFY_THIRD, false },
		{ 640, 576, 64, NHCA_RX_NOTIFY_THIRD, true },
		{ 640, 576, 128, NHCA_RX_NOTIFY_THIRD, false },
		{ 640, 640, 0, NHCA_RX_NOTIFY_THIRD, false },
		{ 640, 32, 64, NHCA_RX_NOTIFY_THIRD, false },
		{ 640, 576, U32_MAX, NHCA_RX_NOTIFY_THIRD, false },
		{ 650, 640, 10, NHCA_RX_NOTIFY_THIRD, true },
		{ 650, 576, 10, NHCA_RX_NOTIFY_THIRD, false },
		{ 0, 0, 0, NHCA_RX_NOTIFY_THIRD, true },
		{ 0, 0, 64, NHCA_RX_NOTIFY_THIRD, false },
		{ NHCA_RCXT_MAX_LEN + 64, 0, 64, NHCA_RX_NOTIFY_THIRD, false },
	};
	struct nhca_rxeth x;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		x = (struct nhca_rxeth) {
			.total = rows[i].total, .offset = rows[i].offset, .part = rows[i].part,
			.notify = rows[i].notify, .segment = SEGMENT,
		};
		KUNIT_EXPECT_EQ_MSG(test, nhca_rxeth_fits(&x, NHCA_RX_THIRD_REQUEST, 0),
				    rows[i].fits, "row %u", i);
		KUNIT_EXPECT_EQ(test, nhca_rxeth_fits(&x, NHCA_RX_THIRD_CHALLENGE, 0),
				rows[i].fits);
	}
	x = (struct nhca_rxeth) { .total = 64, .length = 64, .segment = 64 };
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_THIRD_WRITE, 64));
	x.notify = NHCA_RX_NOTIFY_THIRD;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_THIRD_WRITE, 64));
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_THIRD_WRITE, 60));
}

/* ---- tid rules ---- */

static struct nhca_rcxt in_state(enum nhca_rcxt_state state)
{
	return (struct nhca_rcxt) {
		.tid = TID, .total = TOTAL, .segment = SEGMENT, .state = state, .pvo = PVO,
		.number = NUMBER, .parts = state == NHCA_RCXT_FORWARDING,
	};
}

static struct nhca_rxeth request(u32 tid, u32 number)
{
	return (struct nhca_rxeth) {
		.tid = tid, .total = TOTAL, .segment = SEGMENT, .part = TOTAL, .pvo = PVO,
		.number = number, .notify = NHCA_RX_NOTIFY_THIRD,
	};
}

/**
 * struct request_row - verdicts on third-party requests in one state of the source's rCxt
 * @state:  the state
 * @older:  for an equal tid, and a number that is not higher than the latest number
 * @newer:  for an equal tid, and a higher number
 * @higher: for a higher tid
 */
struct request_row {
	enum nhca_rcxt_state state;
	enum nhca_rcxt_verdict older;
	enum nhca_rcxt_verdict newer;
	enum nhca_rcxt_verdict higher;
};

static const struct request_row request_rows[] = {
	{ NHCA_RCXT_IDLE, NHCA_RCXT_STALE, NHCA_RCXT_STALE, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_SENDING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_WAITING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_RELEASING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_READING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_RECEIVING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_ANSWERING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_ANSWERED, NHCA_RCXT_STALE, NHCA_RCXT_STALE, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_DONE, NHCA_RCXT_STALE, NHCA_RCXT_STALE, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_VIOLATED, NHCA_RCXT_STALE, NHCA_RCXT_STALE, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_MOVING, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_FORWARDING, NHCA_RCXT_DUPLICATE, NHCA_RCXT_ACCEPT, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_FORWARDED, NHCA_RCXT_DUPLICATE, NHCA_RCXT_ACCEPT, NHCA_RCXT_ACCEPT },
};

static void request_case(struct kunit *test, enum nhca_rcxt_state state, u32 tid, u32 number,
			 enum nhca_rcxt_verdict want)
{
	struct nhca_rcxt rc = in_state(state), before = rc;
	struct nhca_rxeth x = request(tid, number);
	u32 i;

	KUNIT_EXPECT_EQ_MSG(test, nhca_rcxt_third_may(&rc, &x), want, "state %u tid %u number %u",
			    state, tid, number);
	KUNIT_EXPECT_MEMEQ(test, &rc, &before, sizeof(rc));
	/* payload of an earlier transfer is still being copied: a new transfer must not begin */
	rc.copies = 1;
	if (want == NHCA_RCXT_ACCEPT && tid != TID)
		KUNIT_EXPECT_EQ(test, nhca_rcxt_third_may(&rc, &x), NHCA_RCXT_BUSY);
	rc.copies = 0;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), want);
	if (want != NHCA_RCXT_ACCEPT) {
		KUNIT_EXPECT_MEMEQ(test, &rc, &before, sizeof(rc));
		return;
	}
	KUNIT_EXPECT_EQ(test, (u32)rc.state, (u32)NHCA_RCXT_FORWARDING);
	KUNIT_EXPECT_TRUE(test, nhca_rcxt_sends(&rc, tid));
	/* the same request a second time, while and after its packets are sent */
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_DUPLICATE);
	for (; rc.parts > 1; )
		KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(&rc, tid));
	KUNIT_EXPECT_TRUE(test, nhca_rcxt_sends(&rc, tid));
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(&rc, tid));
	KUNIT_EXPECT_EQ(test, (u32)rc.state, (u32)NHCA_RCXT_FORWARDED);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_DUPLICATE);
	/* a repetition must be for the same transfer */
	x.number++;
	x.total -= SEGMENT;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_MISMATCH);
	x.total += SEGMENT;
	x.pvo++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_MISMATCH);
	x.pvo--;
	/* several requests at a time, up to a limit */
	for (i = 0; i < NHCA_RCXT_PARTS; i++, x.number++)
		KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_BUSY);
}

/* The source executes each request at most once, in every state of its rCxt. */
static void third_request_in_every_state(struct kunit *test)
{
	const struct request_row *row;
	u32 i;

	static_assert(ARRAY_SIZE(request_rows) == NHCA_RCXT_FORWARDED);
	for (i = 0; i < ARRAY_SIZE(request_rows); i++) {
		row = &request_rows[i];
		/* a lower tid is refused in every state */
		request_case(test, row->state, TID - 1, NUMBER + 1,
			     row->higher == NHCA_RCXT_BUSY ? NHCA_RCXT_BUSY : NHCA_RCXT_STALE);
		request_case(test, row->state, TID, NUMBER, row->older);
		request_case(test, row->state, TID, NUMBER - 1, row->older);
		request_case(test, row->state, TID, NUMBER + 1, row->newer);
		request_case(test, row->state, TID + 1, 0, row->higher);
	}
}

/* Only the notice of the target completes the manager's transfer, and only once. */
static void third_notice(struct kunit *test)
{
	const struct nhca_rcxt_id target = { 5, 6 };
	struct nhca_rxeth x = {
		.tid = TID, .total = TOTAL, .segment = SEGMENT, .notify = NHCA_RX_NOTIFY_THIRD,
		.src_rcxt = target, .src_channel = 77,
	};
	struct nhca_rcxt rc = in_state(NHCA_RCXT_MOVING);

	rc.target = target;
	x.tid--;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_STALE);
	x.tid += 2;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_UNSOLICITED);
	x.tid--;
	x.notify = NHCA_RX_NOTIFY_INITIATOR | NHCA_RX_NOTIFY_TARGET;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_UNSOLICITED);
	x.notify = NHCA_RX_NOTIFY_THIRD;
	x.total++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_MISMATCH);
	x.total--;
	x.src_rcxt.key++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_MISMATCH);
	x.src_rcxt.key--;
	x.src_rcxt.index++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_MISMATCH);
	x.src_rcxt.index--;
	KUNIT_EXPECT_EQ(test, (u32)rc.state, (u32)NHCA_RCXT_MOVING);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, (u32)rc.state, (u32)NHCA_RCXT_DONE);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_DUPLICATE);
	/* neither a source nor a write without a notice accepts this notice */
	rc = in_state(NHCA_RCXT_FORWARDED);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_UNSOLICITED);
	rc = in_state(NHCA_RCXT_WAITING);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_UNSOLICITED);
}

/*
 * The manager begins a transfer, repeats the request, accepts only the challenge of the latest
 * request, and cancels.
 */
static void third_manager(struct kunit *test)
{
	struct nhca_rcxt_pool pool = {};
	struct nhca_rcxt rc = { .state = NHCA_RCXT_IDLE, .tid = TID - 1 };
	struct nhca_rxeth x = request(TID, 99);

	x.tid--;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_begin_move(&pool, &rc, &x, DIGEST, 1), -EINVAL);
	x.tid++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_move_again(&rc, &x, DIGEST), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_begin_move(&pool, &rc, &x, DIGEST, 1), 0);
	KUNIT_EXPECT_EQ(test, x.number, 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_challenge(&rc, &x, DIGEST), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_challenge(&rc, &x, DIGEST + 1), NHCA_RCXT_MISMATCH);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_challenge(&rc, &x), NHCA_RCXT_UNSOLICITED);
	/* the upper half of the digest is constant; the lower half is that of the latest request */
	KUNIT_EXPECT_EQ(test, nhca_rcxt_move_again(&rc, &x, DIGEST ^ BIT_ULL(32)), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_challenge(&rc, &x, DIGEST), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_move_again(&rc, &x, DIGEST + 1), 0);
	KUNIT_EXPECT_EQ(test, x.number, 1);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_challenge(&rc, &x, DIGEST), NHCA_RCXT_MISMATCH);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_challenge(&rc, &x, DIGEST + 1), NHCA_RCXT_ACCEPT);
	/* the challenge of an earlier request is too late */
	x.number = 0;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_challenge(&rc, &x, DIGEST + 1), NHCA_RCXT_MISMATCH);
	/* a peer can neither write to the manager's rCxt nor read from it */
	x.tid++;
	x.length = SEGMENT;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&pool, &rc, &x, false), NHCA_RCXT_BUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_request(&rc, &x), NHCA_RCXT_BUSY);
	x.tid--;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&pool, &rc, &x, false), NHCA_RCXT_BUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_cancel(&pool, &rc, TID), 0);
	x.src_rcxt = rc.target;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(&rc, &x), NHCA_RCXT_UNSOLICITED);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_move_again(&rc, &x, DIGEST), -EINVAL);
}

/*
 * A third-party transfer does not accept payload of a write. A fence is not answered while the send
 * engine makes packets of the transfer.
 */
static void third_payload_and_fence(struct kunit *test)
{
	struct nhca_rcxt rc = { .state = NHCA_RCXT_IDLE };
	struct nhca_rxeth x = request(TID, 0);
	struct nhca_rcxt_pool pool = {};
	enum nhca_rx_status status;
	u32 have;

	x.length = SEGMENT;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&pool, &rc, &x, false), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&pool, &rc, true));
	x.offset += SEGMENT;
	x.pvo += SEGMENT;
	x.notify = NHCA_RX_NOTIFY_INITIATOR;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&pool, &rc, &x, false), NHCA_RCXT_MISMATCH);
	x.notify = NHCA_RX_NOTIFY_THIRD;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&pool, &rc, &x, false), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&pool, &rc, true));

	rc = in_state(NHCA_RCXT_FORWARDING);
	rc.making = true;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_fence(&pool, &rc, &x, &status, &have), NHCA_RCXT_WAIT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sends(&rc, TID));
	KUNIT_EXPECT_EQ(test, nhca_rcxt_fence(&pool, &rc, &x, &status, &have), NHCA_RCXT_WAIT);
	rc.making = false;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_fence(&pool, &rc, &x, &status, &have), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, status, NHCA_RX_ST_FENCED);
	x = request(TID, NUMBER + 1);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(&rc, &x), NHCA_RCXT_STALE);
}

static struct kunit_case third_tid_cases[] = {
	KUNIT_CASE(third_known_bytes),
	KUNIT_CASE(third_lengths),
	KUNIT_CASE(third_request_in_every_state),
	KUNIT_CASE(third_notice),
	KUNIT_CASE(third_manager),
	KUNIT_CASE(third_payload_and_fence),
	{}
};

static struct kunit_suite third_tid_suite = {
	.name = "nhca_rcxt_third_tid",
	.test_cases = third_tid_cases,
};

kunit_test_suite(third_tid_suite);
