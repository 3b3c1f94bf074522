// SPDX-License-Identifier: GPL-2.0
/* KUnit: the performance management agent: values, widths, and what it refuses. */
#include <kunit/test.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "../nhca.h"
#include "../observe/counters.h"
#include "../verbs/pma.h"

#define ANSWERED	(IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY)

static u64 values[NHCA_CNT_MAX];
static struct ib_mad in, out;

/* Query or set an attribute.  Return: the status of the answer. */
static u16 ask(struct kunit *test, u8 method, __be16 attr, u8 port)
{
	struct ib_pma_mad *req = (struct ib_pma_mad *)&in;

	memset(&in, 0, sizeof(in));
	memset(&out, 0x5a, sizeof(out));
	in.mad_hdr.base_version = 1;
	in.mad_hdr.mgmt_class = IB_MGMT_CLASS_PERF_MGMT;
	in.mad_hdr.class_version = 1;
	in.mad_hdr.method = method;
	in.mad_hdr.attr_id = attr;
	in.mad_hdr.tid = cpu_to_be64(7);
	req->data[1] = port;
	KUNIT_EXPECT_EQ(test, nhca_pma_answer(values, &in, &out), ANSWERED);
	KUNIT_EXPECT_EQ(test, out.mad_hdr.method, IB_MGMT_METHOD_GET_RESP);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(out.mad_hdr.tid), 7);
	return be16_to_cpu(out.mad_hdr.status);
}

static void get(struct kunit *test, __be16 attr)
{
	KUNIT_EXPECT_EQ(test, ask(test, IB_MGMT_METHOD_GET, attr, NHCA_PORT), 0);
}

static void *answer(void)
{
	return ((struct ib_pma_mad *)&out)->data;
}

static int pma_init(struct kunit *test)
{
	memset(values, 0, sizeof(values));
	values[NHCA_CNT_SENT_PKTS] = 100;
	values[NHCA_CNT_RCVD_PKTS] = 200;
	values[NHCA_CNT_SENT_MCAST_PKTS] = 10;
	values[NHCA_CNT_RCVD_MCAST_PKTS] = 30;
	values[NHCA_CNT_SENT_BYTES] = 4000;
	values[NHCA_CNT_RCVD_BYTES] = 8002;
	values[NHCA_CNT_LINK_DOWNED] = 3;
	values[NHCA_CNT_RX_BAD_ICRC] = 5;
	values[NHCA_CNT_RX_TOO_SHORT] = 1;
	values[NHCA_CNT_NO_ROUTE] = 4;
	values[NHCA_CNT_SEND_ERR] = 2;
	return 0;
}

static void info_test(struct kunit *test)
{
	struct ib_class_port_info *cpi = answer();

	get(test, IB_PMA_CLASS_PORT_INFO);
	KUNIT_EXPECT_EQ(test, cpi->base_version, 1);
	KUNIT_EXPECT_EQ(test, cpi->class_version, 1);
	KUNIT_EXPECT_TRUE(test, cpi->capability_mask == IB_PMA_CLASS_CAP_EXT_WIDTH);
	KUNIT_EXPECT_EQ(test, ib_get_cpi_resp_time(cpi), 18);
}

static void counters_test(struct kunit *test)
{
	struct ib_pma_portcounters *c = answer();

	get(test, IB_PMA_PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, c->port_select, NHCA_PORT);
	KUNIT_EXPECT_EQ(test, c->link_downed_counter, 3);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(c->port_rcv_errors), 6);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(c->port_xmit_discards), 6);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(c->port_xmit_data), 1000);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(c->port_rcv_data), 2000);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(c->port_xmit_packets), 100);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(c->port_rcv_packets), 200);
}

/* A value that exceeds the width of its counter is reported as the maximum of the counter. */
static void full_test(struct kunit *test)
{
	struct ib_pma_portcounters *c = answer();
	u32 i;

	for (i = 0; i < NHCA_CNT_MAX; i++)
		values[i] = 1ULL << 36;
	get(test, IB_PMA_PORT_COUNTERS);
	KUNIT_EXPECT_EQ(test, c->link_downed_counter, U8_MAX);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(c->port_rcv_errors), U16_MAX);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(c->port_xmit_discards), U16_MAX);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(c->port_xmit_data), U32_MAX);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(c->port_rcv_packets), U32_MAX);
}

static void ext_test(struct kunit *test)
{
	struct ib_pma_portcounters_ext *c = answer();

	values[NHCA_CNT_SENT_BYTES] = 1ULL << 36;
	get(test, IB_PMA_PORT_COUNTERS_EXT);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_xmit_data), 1ULL << 34);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_rcv_data), 2000);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_xmit_packets), 100);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_rcv_packets), 200);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_unicast_xmit_packets), 90);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_unicast_rcv_packets), 170);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_multicast_xmit_packets), 10);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(c->port_multicast_rcv_packets), 30);
}

static void refused_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ask(test, IB_MGMT_METHOD_GET, IB_PMA_PORT_COUNTERS, 2),
			IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	KUNIT_EXPECT_EQ(test, ask(test, IB_MGMT_METHOD_GET, IB_PMA_PORT_COUNTERS_EXT, 0),
			IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	KUNIT_EXPECT_EQ(test, ask(test, IB_MGMT_METHOD_GET, IB_PMA_PORT_COUNTERS, 0xff), 0);
	KUNIT_EXPECT_EQ(test, ask(test, IB_MGMT_METHOD_GET, IB_PMA_PORT_SAMPLES_CONTROL, 1),
			IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	KUNIT_EXPECT_EQ(test, ask(test, IB_MGMT_METHOD_SET, IB_PMA_PORT_COUNTERS, 1),
			IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
}

/*
 * MADs of other classes, and responses, are left to the agents of the core. A MAD of an unknown
 * class version gets a response with an error status.
 */
static void passed_on_test(struct kunit *test)
{
	get(test, IB_PMA_PORT_COUNTERS);
	in.mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	KUNIT_EXPECT_EQ(test, nhca_pma_answer(values, &in, &out), IB_MAD_RESULT_SUCCESS);
	in.mad_hdr.method = IB_MGMT_METHOD_GET;
	in.mad_hdr.mgmt_class = IB_MGMT_CLASS_CM;
	KUNIT_EXPECT_EQ(test, nhca_pma_answer(NULL, &in, &out), IB_MAD_RESULT_SUCCESS);
	in.mad_hdr.mgmt_class = IB_MGMT_CLASS_PERF_MGMT;
	in.mad_hdr.class_version = 2;
	KUNIT_EXPECT_EQ(test, nhca_pma_answer(values, &in, &out), ANSWERED);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(out.mad_hdr.status), IB_MGMT_MAD_STATUS_BAD_VERSION);
}

static struct kunit_case pma_cases[] = {
	KUNIT_CASE(info_test),
	KUNIT_CASE(counters_test),
	KUNIT_CASE(full_test),
	KUNIT_CASE(ext_test),
	KUNIT_CASE(refused_test),
	KUNIT_CASE(passed_on_test),
	{}
};

static struct kunit_suite pma_suite = {
	.name = "nhca_pma",
	.init = pma_init,
	.test_cases = pma_cases,
};

kunit_test_suite(pma_suite);
