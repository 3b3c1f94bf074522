// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: nhca_burst_run() adds packets to a batch until the batch is full. Each packet has the same
 * bytes as a packet that is sent alone.
 */
#include "run_fixture.h"

/*
 * Return: number of fragments of @skb, without its frag_list, that refer to pages of the source
 * memory.
 */
static u32 sources(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 i, k, n = 0;

	for (i = 0; i < info->nr_frags; i++)
		for (k = 0; k < RUN_PAGES; k++)
			n += skb_frag_page(&info->frags[i]) == run->from.pages[k];
	return n;
}

/*
 * Expect that the lengths of @skb and its fragments agree, that no skb has too many fragments, and
 * that exactly the skbs with pages of the source have a zero-copy reference.
 * @lists: the batch may have a frag_list; then only the skbs of the frag_list refer to the source
 */
static void expect_shape(struct kunit *test, struct sk_buff *skb, bool lists)
{
	struct sk_buff *more;
	u32 len = 0, i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++)
		len += skb_frag_size(&skb_shinfo(skb)->frags[i]);
	KUNIT_EXPECT_LE(test, skb_shinfo(skb)->nr_frags, MAX_SKB_FRAGS);
	KUNIT_EXPECT_EQ(test, !!skb_zcopy(skb), sources(skb) > 0);
	if (lists)
		KUNIT_EXPECT_EQ(test, sources(skb), 0);
	else
		KUNIT_EXPECT_FALSE(test, skb_has_frag_list(skb));
	skb_walk_frags(skb, more) {
		KUNIT_EXPECT_EQ(test, skb_headlen(more), 0);
		KUNIT_EXPECT_LE(test, skb_shinfo(more)->nr_frags, MAX_SKB_FRAGS);
		KUNIT_EXPECT_EQ(test, !!skb_zcopy(more), sources(more) > 0);
		len += more->len;
	}
	KUNIT_EXPECT_EQ(test, skb->data_len, len);
	KUNIT_EXPECT_EQ(test, skb_headlen(skb), OUTER);
}

/* Return: number of fragments of @skb and its frag_list that refer to @page. */
static u32 references(const struct sk_buff *skb, const struct page *page)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	struct sk_buff *more;
	u32 i, n = 0;

	for (i = 0; i < info->nr_frags; i++)
		n += compound_head(skb_frag_page(&info->frags[i])) == page;
	skb_walk_frags(skb, more)
		n += references(more, page);
	return n;
}

/*
 * Free @skb. Expect that each fragment in the page of the first fragment releases one reference to
 * this page. Then at most two references to the page remain: one of this function, and one of the
 * page's owner, which is @run or the allocator that cuts pieces from the page.
 */
static void expect_freed(struct kunit *test, struct sk_buff *skb)
{
	struct sk_buff *in = skb_shinfo(skb)->nr_frags ? skb : skb_shinfo(skb)->frag_list;
	struct page *page = compound_head(skb_frag_page(&skb_shinfo(in)->frags[0]));
	u32 n = references(skb, page);
	int before;

	get_page(page);
	before = page_count(page);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, before - page_count(page), n);
	KUNIT_EXPECT_LE(test, page_count(page), 2);
	put_page(page);
}

/* ---- runs in an empty batch ---- */

/*
 * Return: number of packets that fit into one skb, if each has @pieces fragments of payload and one
 * fragment for the mark and the next header.
 */
static u32 fit(u32 pieces)
{
	return (MAX_SKB_FRAGS - pieces - 2) / (pieces + 1) + 1;
}

static const struct {
	struct kind kind;
	u32 count;
	/*
	 * fragments of a packet's payload; 0: the number varies, so the row is tested only with
	 * frag_lists
	 */
	u32 pieces;
} rows[] = {
	{ { MIDDLE, PAGE_SIZE }, 64, 1 },
	{ { MIDDLE, PAGE_SIZE }, 1, 1 },
	{ { MIDDLE, PAGE_SIZE }, 8, 1 },
	/* payloads of one page each, in memory that does not begin at a page */
	{ { MIDDLE, PAGE_SIZE, 100 }, 64, 2 },
	{ { MIDDLE, 1024 }, 64, 1 },
	{ { MIDDLE, 1024, 512 }, 64, 0 },
	{ { MIDDLE, 4000, 60 }, 64, 0 },
	{ { MIDDLE, 2 * PAGE_SIZE }, 64, 2 },
	{ { MIDDLE, 2 * PAGE_SIZE, 4 }, 64, 3 },
	{ { MIDDLE, 5 * PAGE_SIZE }, 64, 5 },
	{ { MIDDLE, PAGE_SIZE, 0, true }, 64, 1 },
	{ { MIDDLE, PAGE_SIZE, 100, true }, 64, 1 },
	{ { MIDDLE, 1024, 0, true }, 64, 1 },
	{ { MIDDLE, 4000, 60, true }, 64, 1 },
	{ { MIDDLE, 2 * PAGE_SIZE, 1, true }, 3, 2 },
	/*
	 * packets of a channel have an RXETH, whose offset and PVO increase from packet to packet
	 */
	{ { NHCA_RX_WRITE, PAGE_SIZE }, 64, 1 },
	{ { NHCA_RX_WRITE, PAGE_SIZE, 0, true }, 64, 1 },
	{ { NHCA_RX_WRITE, 1000, 8 }, 5, 0 },
};

static void one_run(struct kunit *test, const struct kind *k, u32 count, u32 want, bool lists)
{
	u32 bytes = packet_bytes(k), seq, n;
	struct sk_buff *skb;

	run->ndev->features = lists ? LISTS : NO_LISTS;
	run->packets = 0;
	run->payload = 0;
	run->zcopied = 0;
	KUNIT_EXPECT_EQ(test, add_run(test, k, 0, count), want);
	seq = nhca_zcopy_seq(run->flow);
	KUNIT_EXPECT_EQ(test, run->tx.zcopied, k->copy ? 0 : want * k->payload);
	skb = flush(test);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, run->packets, want);
	KUNIT_EXPECT_EQ(test, run->payload, want * k->payload);
	KUNIT_EXPECT_EQ(test, run->zcopied, k->copy ? 0 : want * k->payload);
	KUNIT_EXPECT_EQ(test, skb->len, OUTER + want * bytes);
	KUNIT_EXPECT_EQ(test, ntohs(udp_hdr(skb)->len), sizeof(struct udphdr) + want * bytes);
	if (want > 1) {
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_size, bytes);
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_segs, want);
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_type, SKB_GSO_UDP_L4);
	}
	expect_shape(test, skb, lists);
	for (n = 0; n < want; n++)
		expect_packet(test, skb, OUTER + n * bytes, k, n);
	if (!k->copy)
		KUNIT_EXPECT_FALSE(test, nhca_zcopy_released(run->flow, seq));
	expect_freed(test, skb);
	KUNIT_EXPECT_TRUE(test, nhca_zcopy_released(run->flow, seq));
}

/*
 * A run has as many packets as GSO, the length of an IP packet and the number of fragments allow.
 * With a frag_list, the number of fragments is no limit. Each packet has its own header, payload
 * and mark.
 */
static void run_test(struct kunit *test)
{
	u32 i, most;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		most = min3(rows[i].count, (u32)NHCA_BURST_PACKETS,
			    NHCA_PACKET_BYTES / packet_bytes(&rows[i].kind));
		one_run(test, &rows[i].kind, rows[i].count, most, true);
		if (rows[i].pieces)
			one_run(test, &rows[i].kind, rows[i].count,
				min(most, fit(rows[i].pieces)), false);
	}
}

/* nhca_burst_run() adds no packet, and leaves the batch empty, if it cannot build the packets. */
static void none_test(struct kunit *test)
{
	static const struct kind six = { MIDDLE, NHCA_BURST_PAYLOAD };
	static const struct kind long_kind = { MIDDLE, NHCA_BURST_PAYLOAD + 4, 0, true };
	static const struct kind pages = { MIDDLE, PAGE_SIZE };
	struct fixture *f = test->priv;

	run->ndev->features = LISTS;
	/* six pages, more than a packet may have fragments; then too many bytes to copy */
	KUNIT_EXPECT_EQ(test, add_run(test, &six, 0, 4), 0);
	KUNIT_EXPECT_NULL(test, run->b.skb);
	KUNIT_EXPECT_EQ(test, add_run(test, &long_kind, 0, 4), 0);
	KUNIT_EXPECT_NULL(test, run->b.skb);
	/* an L_Key that belongs to no region */
	local_bh_disable();
	packet(test, &pages, 0, U32_MAX);
	run->sge.lkey += 256;
	KUNIT_EXPECT_EQ(test, nhca_burst_run(&run->tx, 4), 0);
	local_bh_enable();
	KUNIT_EXPECT_NULL(test, run->b.skb);
	KUNIT_EXPECT_NULL(test, run->b.zcopy);
	/*
	 * first the netdev is down; then it has no GSO for UDP, so the batch takes no packets
	 * (alone), even after the netdev has GSO again
	 */
	clear_bit(__LINK_STATE_START, &f->dev->netdev->state);
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 0, 4), 0);
	set_bit(__LINK_STATE_START, &f->dev->netdev->state);
	run->ndev->features = NETIF_F_SG | NETIF_F_HW_CSUM;
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 0, 4), 0);
	KUNIT_EXPECT_TRUE(test, run->b.alone);
	run->ndev->features = LISTS;
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 0, 4), 0);
	KUNIT_EXPECT_NULL(test, run->b.skb);
	KUNIT_EXPECT_NULL(test, flush(test));
}

/* ---- runs and other packets in one batch ---- */

/* Expect that @skb consists of @n packets, the first of which is packet @first of @k. */
static void expect_batch(struct kunit *test, struct sk_buff *skb, const struct kind *k, u32 first,
			 u32 n)
{
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->len, OUTER + n * packet_bytes(k));
	for (i = 0; i < n; i++)
		expect_packet(test, skb, OUTER + i * packet_bytes(k), k, first + i);
}

/*
 * Two runs and a shorter packet share a batch. The shorter packet ends the batch, because GSO
 * allows only the last packet to be shorter. So the next run begins another batch.
 */
static void join_test(struct kunit *test)
{
	static const struct kind pages = { MIDDLE, PAGE_SIZE };
	/* packet 6 has this kind, so its payload begins at byte 6 * 1000 of the source */
	static const struct kind last = { NHCA_OP_WRITE_LAST, 1000 };
	u32 bytes = packet_bytes(&pages);
	struct sk_buff *skb;
	u32 n;

	run->ndev->features = LISTS;
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 0, 4), 4);
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 4, 2), 2);
	KUNIT_EXPECT_EQ(test, add_one(test, &last, 6), 0);
	KUNIT_EXPECT_TRUE(test, run->b.ended);
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&run->sent));
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 7, 3), 3);
	skb = __skb_dequeue(&run->sent);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_segs, 7);
	KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_size, bytes);
	KUNIT_EXPECT_EQ(test, skb->len, OUTER + 6 * bytes + packet_bytes(&last));
	for (n = 0; n < 6; n++)
		expect_packet(test, skb, OUTER + n * bytes, &pages, n);
	expect_packet(test, skb, OUTER + 6 * bytes, &last, 6);
	expect_shape(test, skb, true);
	kfree_skb(skb);
	skb = flush(test);
	expect_batch(test, skb, &pages, 7, 3);
	kfree_skb(skb);
}

/* A batch that is full is sent when the next run is added, and the run is added to a new batch. */
static void full_test(struct kunit *test)
{
	static const struct kind pages = { MIDDLE, PAGE_SIZE };
	u32 most = NHCA_PACKET_BYTES / packet_bytes(&pages), n;
	struct sk_buff *skb;

	run->ndev->features = LISTS;
	n = add_run(test, &pages, 0, 10);
	KUNIT_EXPECT_EQ(test, n, 10);
	/* nine packets are offered, but the batch has room for most - 10 packets only */
	n += add_run(test, &pages, n, 9);
	KUNIT_EXPECT_EQ(test, n, most);
	n += add_run(test, &pages, n, 19 - n);
	KUNIT_EXPECT_EQ(test, n, 19);
	skb = __skb_dequeue(&run->sent);
	expect_batch(test, skb, &pages, 0, most);
	kfree_skb(skb);
	skb = flush(test);
	expect_batch(test, skb, &pages, most, n - most);
	kfree_skb(skb);
}

/*
 * The MIDDLE packets of a message are shorter than its FIRST packet, which has a RETH, so only one
 * MIDDLE packet may follow in the batch of the FIRST packet. If all MIDDLE packets and the LAST
 * packet fit into one batch, the FIRST packet is sent alone. Otherwise one MIDDLE packet shares the
 * batch of the FIRST packet and ends the batch.
 */
static void after_first_test(struct kunit *test)
{
	static const struct kind first = { NHCA_OP_WRITE_FIRST, PAGE_SIZE };
	static const struct kind pages = { MIDDLE, PAGE_SIZE };
	u32 most = NHCA_PACKET_BYTES / packet_bytes(&pages);
	struct sk_buff *skb;

	run->ndev->features = LISTS;
	KUNIT_EXPECT_EQ(test, add_one(test, &first, 0), 0);
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 1, most - 1), most - 1);
	skb = __skb_dequeue(&run->sent);
	expect_batch(test, skb, &first, 0, 1);
	KUNIT_EXPECT_FALSE(test, skb_is_gso(skb));
	kfree_skb(skb);
	skb = flush(test);
	expect_batch(test, skb, &pages, 1, most - 1);
	kfree_skb(skb);

	KUNIT_EXPECT_EQ(test, add_one(test, &first, 0), 0);
	KUNIT_EXPECT_EQ(test, add_run(test, &pages, 1, most), 1);
	KUNIT_EXPECT_TRUE(test, run->b.ended);
	skb = flush(test);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, skb->len, OUTER + packet_bytes(&first) + packet_bytes(&pages));
	expect_packet(test, skb, OUTER, &first, 0);
	expect_packet(test, skb, OUTER + packet_bytes(&first), &pages, 1);
	kfree_skb(skb);
}

/*
 * If the source ends early, the run has only the packets whose payload is complete. Each of these
 * packets, also the last, has its mark.
 */
static void short_source_test(struct kunit *test)
{
	static const struct kind kinds[] = {
		{ MIDDLE, PAGE_SIZE }, { MIDDLE, PAGE_SIZE, 0, true }, { MIDDLE, 1024 },
		{ MIDDLE, PAGE_SIZE, 8 },
	};
	struct sk_buff *skb;
	u32 i, k, n;

	for (i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
		k = i / 2;
		run->ndev->features = i % 2 ? LISTS : NO_LISTS;
		for (n = 0; n < 4; n++) {
			local_bh_disable();
			/* the source has the payloads of n packets and half of the next payload */
			packet(test, &kinds[k], 0, n * kinds[k].payload + kinds[k].payload / 2);
			KUNIT_EXPECT_EQ(test, nhca_burst_run(&run->tx, 10), n);
			local_bh_enable();
			skb = flush(test);
			if (!n) {
				KUNIT_EXPECT_NULL(test, skb);
				continue;
			}
			expect_batch(test, skb, &kinds[k], 0, n);
			expect_shape(test, skb, i % 2);
			expect_freed(test, skb);
		}
	}
}

static struct kunit_case run_cases[] = {
	KUNIT_CASE(run_test),
	KUNIT_CASE(none_test),
	KUNIT_CASE(join_test),
	KUNIT_CASE(full_test),
	KUNIT_CASE(after_first_test),
	KUNIT_CASE(short_source_test),
	{}
};

static struct kunit_suite run_suite = {
	.name = "nhca_run",
	.init = run_init,
	.exit = run_exit,
	.test_cases = run_cases,
};

kunit_test_suite(run_suite);
