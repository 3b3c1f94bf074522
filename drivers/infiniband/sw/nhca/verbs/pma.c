// SPDX-License-Identifier: GPL-2.0
/*
 * Performance management agent (IBTA 16.1): answers requests for the counters of the port.  For a
 * read of a file in /sys/class/infiniband/NAME/ports/1/counters the RDMA core makes such a request.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "objects.h"
#include "verbs.h"
#include "pma.h"

#define NHCA_PMA_VERSION	1
/* PortSelect that means all ports */
#define NHCA_PMA_ALL_PORTS	0xff
/* Maximum time from a request to its response: 4.096 us * 2^18 = 1.07 s */
#define NHCA_PMA_RESP_TIME	18
/* PortXmitData and PortRcvData count in units of 4 bytes. */
#define NHCA_PMA_DATA_UNIT	4

/* Counters of a fixed width stop at their maximum (16.1.3.5). */
#define nhca_pma_clamp(value, max)	min_t(u64, value, max)

static void nhca_pma_class_port_info(struct ib_pma_mad *out)
{
	struct ib_class_port_info *cpi = (struct ib_class_port_info *)out->data;

	memset(out->data, 0, sizeof(out->data));
	cpi->base_version = IB_MGMT_BASE_VERSION;
	cpi->class_version = NHCA_PMA_VERSION;
	cpi->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
	ib_set_cpi_resp_time(cpi, NHCA_PMA_RESP_TIME);
}

/*
 * Return: number of packets that were damaged or malformed, or that had a wrong length.  Packets
 * that the addressed QP refuses for another reason do not count.
 */
static u64 nhca_pma_rcv_errors(const u64 *v)
{
	return v[NHCA_CNT_RX_TOO_SHORT] + v[NHCA_CNT_RX_BAD_LENGTH] + v[NHCA_CNT_RX_BAD_ICRC] +
	       v[NHCA_CNT_RX_BAD_VERSION];
}

static void nhca_pma_counters(const u64 *v, struct ib_pma_mad *out)
{
	struct ib_pma_portcounters *c = (struct ib_pma_portcounters *)out->data;
	u64 discards = v[NHCA_CNT_SEND_ERR] + v[NHCA_CNT_NO_ROUTE];

	*c = (struct ib_pma_portcounters) {
		.port_select = c->port_select,
		.counter_select = c->counter_select,
		.link_downed_counter = nhca_pma_clamp(v[NHCA_CNT_LINK_DOWNED], U8_MAX),
		.port_rcv_errors = cpu_to_be16(nhca_pma_clamp(nhca_pma_rcv_errors(v), U16_MAX)),
		.port_xmit_discards = cpu_to_be16(nhca_pma_clamp(discards, U16_MAX)),
		.port_xmit_data = cpu_to_be32(nhca_pma_clamp(v[NHCA_CNT_SENT_BYTES] /
							     NHCA_PMA_DATA_UNIT, U32_MAX)),
		.port_rcv_data = cpu_to_be32(nhca_pma_clamp(v[NHCA_CNT_RCVD_BYTES] /
							    NHCA_PMA_DATA_UNIT, U32_MAX)),
		.port_xmit_packets = cpu_to_be32(nhca_pma_clamp(v[NHCA_CNT_SENT_PKTS], U32_MAX)),
		.port_rcv_packets = cpu_to_be32(nhca_pma_clamp(v[NHCA_CNT_RCVD_PKTS], U32_MAX)),
	};
}

static void nhca_pma_counters_ext(const u64 *v, struct ib_pma_mad *out)
{
	struct ib_pma_portcounters_ext *c = (struct ib_pma_portcounters_ext *)out->data;
	u64 sent = v[NHCA_CNT_SENT_PKTS], rcvd = v[NHCA_CNT_RCVD_PKTS];
	/*
	 * A packet that a CPU counted while the sums were made may be in the multicast sum, but not
	 * in the sum of all packets.  min() keeps the differences below from becoming negative.
	 */
	u64 sent_mcast = min(v[NHCA_CNT_SENT_MCAST_PKTS], sent);
	u64 rcvd_mcast = min(v[NHCA_CNT_RCVD_MCAST_PKTS], rcvd);

	*c = (struct ib_pma_portcounters_ext) {
		.port_select = c->port_select,
		.counter_select = c->counter_select,
		.port_xmit_data = cpu_to_be64(v[NHCA_CNT_SENT_BYTES] / NHCA_PMA_DATA_UNIT),
		.port_rcv_data = cpu_to_be64(v[NHCA_CNT_RCVD_BYTES] / NHCA_PMA_DATA_UNIT),
		.port_xmit_packets = cpu_to_be64(sent),
		.port_rcv_packets = cpu_to_be64(rcvd),
		.port_unicast_xmit_packets = cpu_to_be64(sent - sent_mcast),
		.port_unicast_rcv_packets = cpu_to_be64(rcvd - rcvd_mcast),
		.port_multicast_xmit_packets = cpu_to_be64(sent_mcast),
		.port_multicast_rcv_packets = cpu_to_be64(rcvd_mcast),
	};
}

/*
 * Fill in the attribute of a response.  On entry @out->data is the attribute of the request.
 * Return: the status of the response.
 */
static u16 nhca_pma_get(const u64 *values, struct ib_pma_mad *out)
{
	/* PortCounters and PortCountersExtended have PortSelect in the same byte */
	u8 port = ((struct ib_pma_portcounters *)out->data)->port_select;
	bool known = port == NHCA_PORT || port == NHCA_PMA_ALL_PORTS;

	switch (out->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		nhca_pma_class_port_info(out);
		return IB_MGMT_MAD_STATUS_SUCCESS;
	case IB_PMA_PORT_COUNTERS:
		if (!known)
			return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
		nhca_pma_counters(values, out);
		return IB_MGMT_MAD_STATUS_SUCCESS;
	case IB_PMA_PORT_COUNTERS_EXT:
		if (!known)
			return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
		nhca_pma_counters_ext(values, out);
		return IB_MGMT_MAD_STATUS_SUCCESS;
	default:
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	}
}

int nhca_pma_answer(const u64 *values, const struct ib_mad *in, struct ib_mad *out)
{
	u16 status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	u8 method = in->mad_hdr.method;

	static_assert(sizeof(struct ib_pma_mad) == sizeof(struct ib_mad));
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    (method != IB_MGMT_METHOD_GET && method != IB_MGMT_METHOD_SET))
		return IB_MAD_RESULT_SUCCESS;

	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	/* Set is refused, because it would clear counters that other readers expect to grow. */
	if (in->mad_hdr.class_version != NHCA_PMA_VERSION)
		status = IB_MGMT_MAD_STATUS_BAD_VERSION;
	else if (method == IB_MGMT_METHOD_GET)
		status = nhca_pma_get(values, (struct ib_pma_mad *)out);
	out->mad_hdr.status = cpu_to_be16(status);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

int nhca_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
		     const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *pkey_index)
{
	u64 values[NHCA_CNT_MAX];

	if (in->mad_hdr.mgmt_class == IB_MGMT_CLASS_PERF_MGMT)
		nhca_port_counters(to_nhca_dev(ibdev), values);
	return nhca_pma_answer(values, in, out);
}
