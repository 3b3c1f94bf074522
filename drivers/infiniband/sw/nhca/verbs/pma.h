/* SPDX-License-Identifier: GPL-2.0 */
/* The performance management agent; for verbs/ and tests. */
#ifndef NHCA_VERBS_PMA_H
#define NHCA_VERBS_PMA_H

#include <linux/types.h>

struct ib_mad;

/**
 * nhca_pma_answer - answer a request of class PerfMgmt
 * @values: the counters of the port, by enum nhca_counter; not read for requests of other classes
 * @in:     the request
 * @out:    becomes the response
 *
 * The function answers Get of ClassPortInfo, PortCounters and PortCountersExtended (IBTA 16.1.3,
 * 16.1.4).  Data counters count payload (of raw packet QPs: whole frames) in units of 4 bytes.  For
 * Set and for other attributes the response has the status of 13.4.7 for a method and attribute
 * that are not supported together.
 * Context: any.
 * Return: IB_MAD_RESULT_SUCCESS; with IB_MAD_RESULT_REPLY if @out is to be sent, otherwise the core
 * passes the request to its agents.
 */
int nhca_pma_answer(const u64 *values, const struct ib_mad *in, struct ib_mad *out);

#endif /* NHCA_VERBS_PMA_H */
