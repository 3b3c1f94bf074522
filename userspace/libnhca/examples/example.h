/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the examples share: a device, and channels of this device.  On several hosts, the programs
 * would exchange the QP number, key, rCxt and PVO of each channel, for example over TCP.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdint.h>

#include <infiniband/nhcadv.h>

#define MAX_RCXTS	4

/**
 * struct device - an opened device
 * @ah:  address of the device itself: all channels of an example belong to one device
 * @job: job of the channels
 */
struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_ah *ah;
	uint32_t job;
};

/**
 * struct end - a channel with job memory
 * @bytes: the job memory, zeroed
 */
struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	struct nhcadv_channel_info info;
	struct nhcadv_job_mem *mem;
	uint64_t rcxts[MAX_RCXTS];
	void *bytes;
};

/**
 * struct end_attr - attributes of an end
 * @work_requests: work requests that the send FIFO has room for
 * @frames:        frames that the receive FIFO has room for
 * @inline_data:   bytes of inline data of a work request
 * @rcxts:         rCxts: one for each peer, at most MAX_RCXTS
 * @length:        bytes of job memory
 * @access:        rights of the peers: enum ibv_access_flags
 */
struct end_attr {
	uint32_t work_requests;
	uint32_t frames;
	uint32_t inline_data;
	uint32_t rcxts;
	uint32_t length;
	int access;
};

/* End the program with a message if @error is an errno, and not 0. */
void check(int error, const char *what);

/*
 * Open the device that the arguments of the program name: DEVICE [GID-INDEX].
 * @caps: enum nhcadv_device_caps that the driver must have
 */
void open_device(struct device *device, int argc, char **argv, uint64_t caps);
void close_device(struct device *device);

void create_end(struct end *end, const struct device *device, const struct end_attr *attr);
void destroy_end(struct end *end);

/* Return: the peer for work requests of other ends that name @end. */
struct nhcadv_peer peer_of(const struct end *end, const struct device *device);

/*
 * Return: enum nhcadv_wc_kind of the next completion, or -1 if there is none.  The caller must
 * release the frame of NHCADV_WC_FRAME, whose index is written to @frame.
 */
int poll_kind(struct end *end, uint32_t *frame);

/* Like poll_kind(), but waits up to @ms milliseconds for a completion. */
int wait_kind(struct end *end, int ms, uint32_t *frame);

/* Send a probe to @peer, which answers with the state of the transfer in a frame. */
void probe(struct end *end, const struct nhcadv_peer *peer, const struct nhcadv_transfer *t);

#endif /* EXAMPLE_H */
