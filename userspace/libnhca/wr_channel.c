// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_wr_*(): work requests of channels.  The checks here let a wrong work request fail without
 * moving the channel to the error state.  The kernel does not rely on these checks: it repeats each
 * check that its own safety needs.
 */
#include <errno.h>
#include <string.h>

#include "nhca.h"

static_assert((int)NHCADV_NOTIFY_INITIATOR == NHCA_NOTIFY_INITIATOR &&
	      (int)NHCADV_NOTIFY_TARGET == NHCA_NOTIFY_TARGET, "notify");
static_assert(sizeof(struct nhca_rcxt_wr) + sizeof(struct nhca_rcxt_target) <= 64, "a slot of 128 bytes has room for them");
static_assert(NHCADV_MOVE_HEADER == NHCA_MOVE_HEADER, "headers");
static_assert(NHCADV_ACCUMULATE_HEADER == NHCA_ACCUMULATE_HEADER &&
	      NHCADV_MAX_ORDERED == NHCA_MAX_ORDERED &&
	      (int)NHCADV_ACC_SUM == NHCA_ACCUMULATE_SUM &&
	      (int)NHCADV_ACC_PROD == NHCA_ACCUMULATE_PROD &&
	      (int)NHCADV_ACC_XOR == NHCA_ACCUMULATE_XOR &&
	      (int)NHCADV_ACC_I32 == NHCA_ACCUMULATE_I32 &&
	      (int)NHCADV_ACC_BF16 == NHCA_ACCUMULATE_BF16, "accumulates");
static_assert(NHCADV_PART_HEADER == sizeof(struct nhca_rcxt_wr), "room of a part");

static struct nhca_channel *to_channel(struct nhcadv_qp_ex *dv)
{
	return container_of(dv, struct nhca_channel, dv);
}

/* @flags: the flags that ibv_qp_ex.wr_flags may have in addition to IBV_SEND_SIGNALED */
static struct nhca_send_wqe *begin(struct nhcadv_qp_ex *dv, enum nhca_wr_opcode opcode,
				   uint32_t flags)
{
	struct nhca_qp *qp = &to_channel(dv)->qp;

	if (qp->vqp.qp_ex.wr_flags & ~(flags | IBV_SEND_SIGNALED)) {
		nhca_wr_fail(qp, EINVAL);
		return NULL;
	}
	return nhca_wr_begin(qp, opcode);
}

/*
 * Return: true if the address handle is of the channel's context.  The kernel gets only the number
 * of the address handle, so it cannot check the context.
 */
static bool ah_ok(struct nhca_qp *qp, const struct ibv_ah *ah)
{
	return ah->context == qp->vqp.qp.context;
}

/* Return: false after an error */
static bool put_peer(struct nhca_qp *qp, struct nhca_send_wqe *wqe, const struct nhcadv_peer *peer)
{
	if (!ah_ok(qp, peer->ah)) {
		nhca_wr_fail(qp, EINVAL);
		return false;
	}
	wqe->chan.ah_id = to_nah(peer->ah)->id;
	wqe->chan.remote_qpn = peer->qpn;
	wqe->chan.remote_key = peer->key;
	return true;
}

static void wr_packet(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer, uint64_t cookie)
{
	struct nhca_send_wqe *wqe;

	/* Accept and ignore IBV_SEND_INLINE, as nhca_wr_begin() does. */
	wqe = begin(dv, NHCA_WR_CH_PACKET, IBV_SEND_SOLICITED | IBV_SEND_INLINE);
	if (wqe && put_peer(&to_channel(dv)->qp, wqe, peer))
		wqe->chan.cookie = cookie;
}

/* Like nhca_wr_set_sge_list(), but refuse more payload than a frame has room for. */
static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num_sge, const struct ibv_sge *sg_list)
{
	uint64_t length = 0;
	size_t i;

	for (i = 0; i < num_sge; i++)
		length += sg_list[i].length;
	if (length > NHCA_FRAME_DATA)
		nhca_wr_fail(to_nqp_ex(ibqp), EINVAL);
	else
		nhca_wr_set_sge_list(ibqp, num_sge, sg_list);
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ibqp, 1, &sge);
}

static uint32_t packets(uint32_t bytes, uint32_t segment)
{
	return bytes / segment + !!(bytes % segment);
}

static bool transfer_ok(const struct nhcadv_transfer *t)
{
	if (!t->tid || t->total > NHCA_MAX_TRANSFER ||
	    t->notify & ~(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET))
		return false;
	return !t->segment || (t->segment % 4 == 0 && t->segment >= NHCA_MIN_SEGMENT &&
			       t->segment <= NHCA_MAX_SEGMENT &&
			       packets(t->total, t->segment) <= NHCA_MAX_TRANSFER_PACKETS);
}

/* Return: true if a packet of the transfer begins at @offset */
static bool offset_ok(const struct nhcadv_transfer *t, uint32_t offset)
{
	return t->segment && offset % t->segment == 0 && (!offset || offset < t->total);
}

/*
 * Build the request of a transfer.  The request has no SGEs and no inline data.  So the function
 * sets qp->wr_wqe to NULL, and a setter that follows is an error.
 * Return: the description of the transfer, or NULL after an error.
 */
static struct nhca_rcxt_wr *begin_transfer(struct nhcadv_qp_ex *dv, enum nhca_wr_opcode opcode,
					   const struct nhcadv_peer *peer,
					   const struct nhcadv_transfer *t)
{
	struct nhca_qp *qp = &to_channel(dv)->qp;
	struct nhca_send_wqe *wqe = begin(dv, opcode, 0);

	if (!wqe)
		return NULL;
	if (!transfer_ok(t)) {
		nhca_wr_fail(qp, EINVAL);
		return NULL;
	}
	if (!put_peer(qp, wqe, peer))
		return NULL;
	wqe->chan.cookie = t->cookie;
	wqe->chan.local_rcxt = t->local_rcxt;
	wqe->chan.remote_rcxt = t->remote_rcxt;
	wqe->rcxt[0] = (struct nhca_rcxt_wr){
		.local_pvo = t->local_pvo,
		.remote_pvo = t->remote_pvo,
		.tid = t->tid,
		.total = t->total,
		.segment = t->segment,
		.notify = t->notify,
	};
	qp->wr_wqe = NULL;
	return wqe->rcxt;
}

static void wr_write(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		     const struct nhcadv_transfer *transfer)
{
	struct nhca_rcxt_wr *wr = begin_transfer(dv, NHCA_WR_CH_WRITE, peer, transfer);

	if (wr)
		wr->length = transfer->total;
}

/* Let the request send only @length bytes from @offset on. */
static void put_part(struct nhcadv_qp_ex *dv, struct nhca_rcxt_wr *wr,
		     const struct nhcadv_transfer *t, uint32_t offset, uint32_t length)
{
	if (!offset_ok(t, offset) || length > t->total - offset || (!length && t->total) ||
	    (length % t->segment && length != t->total - offset)) {
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
		return;
	}
	wr->offset = offset;
	wr->length = length;
	wr->flags |= NHCA_RCXT_WR_RETRANSMIT;
}

static void wr_retransmit(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		       const struct nhcadv_transfer *transfer, uint32_t offset, uint32_t length)
{
	struct nhca_rcxt_wr *wr = begin_transfer(dv, NHCA_WR_CH_WRITE, peer, transfer);

	if (wr)
		put_part(dv, wr, transfer, offset, length);
}

static void wr_read(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *transfer)
{
	begin_transfer(dv, NHCA_WR_CH_READ, peer, transfer);
}

static void wr_cancel(struct nhcadv_qp_ex *dv, uint64_t local_rcxt, uint32_t tid)
{
	struct nhca_send_wqe *wqe = begin(dv, NHCA_WR_CH_CANCEL, 0);

	if (!wqe)
		return;
	if (!tid) {
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
		return;
	}
	wqe->chan.local_rcxt = local_rcxt;
	wqe->rcxt[0] = (struct nhca_rcxt_wr){ .tid = tid };
	to_channel(dv)->qp.wr_wqe = NULL;
}

static void wr_probe(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		     const struct nhcadv_transfer *transfer, uint32_t offset)
{
	struct nhca_rcxt_wr *wr = begin_transfer(dv, NHCA_WR_CH_PROBE, peer, transfer);

	if (!wr)
		return;
	if (!offset_ok(transfer, offset))
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
	else
		wr->offset = offset;
}

static void wr_fence(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer, uint64_t remote_rcxt,
		     uint64_t local_rcxt, uint32_t tid)
{
	struct nhca_qp *qp = &to_channel(dv)->qp;
	struct nhca_send_wqe *wqe;

	if (!(to_nctx(qp->vqp.qp.context)->features & NHCA_FEATURE_FENCE)) {
		nhca_wr_fail(qp, EOPNOTSUPP);
		return;
	}
	if (!tid) {
		nhca_wr_fail(qp, EINVAL);
		return;
	}
	wqe = begin(dv, NHCA_WR_CH_FENCE, 0);
	if (!wqe)
		return;
	if (!put_peer(qp, wqe, peer))
		return;
	wqe->chan.cookie = wqe->wr_id;
	wqe->chan.local_rcxt = local_rcxt;
	wqe->chan.remote_rcxt = remote_rcxt;
	wqe->rcxt[0] = (struct nhca_rcxt_wr){ .tid = tid };
	qp->wr_wqe = NULL;
}

/* Return: the description of the transfer, or NULL after an error */
static struct nhca_rcxt_wr *begin_move(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *source,
				       const struct nhcadv_target *target,
				       const struct nhcadv_transfer *transfer)
{
	struct nhca_qp *qp = &to_channel(dv)->qp;
	struct nhca_rcxt_wr *wr;

	if (!(to_nctx(qp->vqp.qp.context)->features & NHCA_FEATURE_MOVE)) {
		nhca_wr_fail(qp, EOPNOTSUPP);
		return NULL;
	}
	if (!(transfer->notify & NHCA_NOTIFY_INITIATOR) || target->peer.qpn >> 24 ||
	    !ah_ok(qp, target->peer.ah)) {
		nhca_wr_fail(qp, EINVAL);
		return NULL;
	}
	wr = begin_transfer(dv, NHCA_WR_CH_MOVE, source, transfer);
	if (!wr)
		return NULL;
	wr->local_pvo = target->pvo;
	*(struct nhca_rcxt_target *)(wr + 1) = (struct nhca_rcxt_target){
		.rcxt = target->rcxt,
		.key = target->peer.key,
		.ah_id = to_nah(target->peer.ah)->id,
		.qpn = target->peer.qpn,
	};
	return wr;
}

static void wr_move(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *source,
		    const struct nhcadv_target *target, const struct nhcadv_transfer *transfer)
{
	struct nhca_rcxt_wr *wr = begin_move(dv, source, target, transfer);

	if (wr)
		wr->length = transfer->total;
}

static void wr_move_again(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *source,
			  const struct nhcadv_target *target,
			  const struct nhcadv_transfer *transfer, uint32_t offset,
			  uint32_t length)
{
	struct nhca_rcxt_wr *wr = begin_move(dv, source, target, transfer);

	if (wr)
		put_part(dv, wr, transfer, offset, length);
}

/* Return: true if the device has this feature; otherwise the work request has failed */
static bool has_feature(struct nhcadv_qp_ex *dv, uint32_t feature)
{
	struct nhca_qp *qp = &to_channel(dv)->qp;

	if (to_nctx(qp->vqp.qp.context)->features & feature)
		return true;
	nhca_wr_fail(qp, EOPNOTSUPP);
	return false;
}

/*
 * Build the request of a half-receive write or read.
 * @fifo_pvo: PVO at the end that has the FIFO; must be 0, because the transfer uses no memory there
 * Return: the description of the transfer, or NULL after an error.
 */
static struct nhca_rcxt_wr *begin_frames(struct nhcadv_qp_ex *dv, enum nhca_wr_opcode opcode,
					 const struct nhcadv_peer *peer,
					 const struct nhcadv_transfer *transfer,
					 uint64_t fifo_pvo)
{
	uint32_t feature = opcode == NHCA_WR_CH_READ ? NHCA_FEATURE_READ_FRAMES :
						       NHCA_FEATURE_FRAMES;
	struct nhca_rcxt_wr *wr;

	if (!has_feature(dv, feature))
		return NULL;
	if (fifo_pvo || transfer->segment > NHCA_FRAME_DATA) {
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
		return NULL;
	}
	wr = begin_transfer(dv, opcode, peer, transfer);
	if (wr)
		wr->flags = NHCA_RCXT_WR_FRAMES;
	return wr;
}

static void wr_write_frames(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
			    const struct nhcadv_transfer *transfer)
{
	struct nhca_rcxt_wr *wr = begin_frames(dv, NHCA_WR_CH_WRITE, peer, transfer,
					       transfer->remote_pvo);

	if (wr)
		wr->length = transfer->total;
}

static void wr_frames_again(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
			    const struct nhcadv_transfer *transfer, uint32_t offset,
			    uint32_t length)
{
	struct nhca_rcxt_wr *wr = begin_frames(dv, NHCA_WR_CH_WRITE, peer, transfer,
					       transfer->remote_pvo);

	if (wr)
		put_part(dv, wr, transfer, offset, length);
}

static void wr_read_frames(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
			   const struct nhcadv_transfer *transfer, uint32_t length)
{
	struct nhca_rcxt_wr *wr = begin_frames(dv, NHCA_WR_CH_READ, peer, transfer,
					       transfer->local_pvo);

	if (!wr)
		return;
	/*
	 * A part is a whole number of packets.  If the kernel chooses the segment, the program
	 * cannot know where packets end, so it can only request the whole read.
	 */
	if (length != transfer->total &&
	    (!length || length > transfer->total || !transfer->segment ||
	     length % transfer->segment))
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
	else
		wr->length = length;
}

static void wr_read_frames_again(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
				 const struct nhcadv_transfer *transfer, uint32_t offset,
				 uint32_t length)
{
	struct nhca_rcxt_wr *wr = begin_frames(dv, NHCA_WR_CH_READ, peer, transfer,
					       transfer->local_pvo);

	if (wr)
		put_part(dv, wr, transfer, offset, length);
}

/*
 * Copy the buffers into the slot, after the description of the transfer.
 * Return: false if they do not have @length bytes together.
 */
static bool copy_part(struct nhca_rcxt_wr *wr, uint32_t length, size_t num_buf,
		      const struct ibv_data_buf *buf_list)
{
	uint8_t *data = (uint8_t *)(wr + 1);
	size_t i;

	for (i = 0; i < num_buf; i++) {
		if (buf_list[i].length > length)
			return false;
		memcpy(data, buf_list[i].addr, buf_list[i].length);
		data += buf_list[i].length;
		length -= buf_list[i].length;
	}
	return !length;
}

/*
 * Build a work request NHCA_WR_CH_PART.
 * @notify_ok: the transfer notifies the right ends
 * @flags:     NHCA_RCXT_WR_*
 */
static void put_packet(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		       const struct nhcadv_transfer *transfer, uint32_t offset, size_t num_buf,
		       const struct ibv_data_buf *buf_list, bool notify_ok, uint8_t flags)
{
	struct nhca_rcxt_wr *wr = begin_transfer(dv, NHCA_WR_CH_PART, peer, transfer);
	struct nhca_qp *qp = &to_channel(dv)->qp;
	struct nhca_send_wqe *wqe;
	uint32_t length;

	if (!wr)
		return;
	length = transfer->total - offset;
	if (length > transfer->segment)
		length = transfer->segment;
	if (!offset_ok(transfer, offset) || !notify_ok ||
	    sizeof(*wr) + length > qp->max_inline || !copy_part(wr, length, num_buf, buf_list)) {
		nhca_wr_fail(qp, EINVAL);
		return;
	}
	wr->local_pvo = 0;
	wr->offset = offset;
	wr->length = length;
	wr->flags = flags;
	wqe = container_of(wr, struct nhca_send_wqe, rcxt[0]);
	wqe->inline_len = length;
	wqe->flags |= NHCA_SEND_INLINE;
}

static void wr_part(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *transfer, uint32_t offset, size_t num_buf,
		    const struct ibv_data_buf *buf_list)
{
	if (has_feature(dv, NHCA_FEATURE_PART))
		put_packet(dv, peer, transfer, offset, num_buf, buf_list,
			   transfer->notify & NHCA_NOTIFY_INITIATOR, 0);
}

static void wr_answer(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		      const struct nhcadv_transfer *transfer, uint32_t offset, size_t num_buf,
		      const struct ibv_data_buf *buf_list)
{
	if (has_feature(dv, NHCA_FEATURE_ASK))
		put_packet(dv, peer, transfer, offset, num_buf, buf_list, !transfer->notify,
			   NHCA_RCXT_WR_PROGRAM);
}

static void wr_ask(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
		   const struct nhcadv_transfer *transfer)
{
	struct nhca_rcxt_wr *wr;

	if (!has_feature(dv, NHCA_FEATURE_ASK))
		return;
	wr = begin_transfer(dv, NHCA_WR_CH_READ, peer, transfer);
	if (wr)
		wr->flags = NHCA_RCXT_WR_PROGRAM;
}

static void wr_ask_again(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
			 const struct nhcadv_transfer *transfer)
{
	struct nhca_rcxt_wr *wr;

	if (!has_feature(dv, NHCA_FEATURE_ASK))
		return;
	wr = begin_transfer(dv, NHCA_WR_CH_READ, peer, transfer);
	if (wr && !transfer->segment)
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
	else if (wr)
		wr->flags = NHCA_RCXT_WR_PROGRAM | NHCA_RCXT_WR_RETRANSMIT;
}

/* Return: bytes of an element; 0: there is no such operation for elements of this type */
static uint32_t element_size(uint32_t op, uint32_t type)
{
	static const uint8_t sizes[] = {
		[NHCADV_ACC_I32] = 4, [NHCADV_ACC_I64] = 8, [NHCADV_ACC_U32] = 4,
		[NHCADV_ACC_U64] = 8, [NHCADV_ACC_F32] = 4, [NHCADV_ACC_F64] = 8,
		[NHCADV_ACC_BF16] = 2,
	};
	/* the operations on bits are for integers only */
	uint32_t last = type < NHCADV_ACC_F32 ? NHCADV_ACC_XOR : NHCADV_ACC_PROD;

	if (op < NHCADV_ACC_SUM || op > last || type >= sizeof(sizes))
		return 0;
	return sizes[type];
}

/* Return: the struct nhca_rcxt_wr of the accumulate; NULL: ibv_wr_complete() returns an error */
static struct nhca_rcxt_wr *begin_accumulate(struct nhcadv_qp_ex *dv,
					     const struct nhcadv_peer *peer,
					     const struct nhcadv_transfer *transfer, uint32_t op,
					     uint32_t type)
{
	uint32_t size = element_size(op, type);
	struct nhca_rcxt_wr *wr;

	if (!has_feature(dv, NHCA_FEATURE_ACCUMULATE))
		return NULL;
	if (!size ||
	    (transfer->total | transfer->segment | transfer->remote_pvo) & (size - 1)) {
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
		return NULL;
	}
	wr = begin_transfer(dv, NHCA_WR_CH_ACCUMULATE, peer, transfer);
	if (wr) {
		wr->op = op;
		wr->type = type;
	}
	return wr;
}

static void wr_accumulate(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
			  const struct nhcadv_transfer *transfer, uint32_t op, uint32_t type,
			  uint32_t flags)
{
	struct nhca_rcxt_wr *wr = begin_accumulate(dv, peer, transfer, op, type);

	if (!wr)
		return;
	if (flags & ~NHCADV_ACC_ORDERED ||
	    (flags && !(transfer->notify & NHCA_NOTIFY_INITIATOR))) {
		nhca_wr_fail(&to_channel(dv)->qp, EINVAL);
		return;
	}
	wr->length = transfer->total;
	wr->flags = flags ? NHCA_RCXT_WR_ORDERED : 0;
}

static void wr_accumulate_again(struct nhcadv_qp_ex *dv, const struct nhcadv_peer *peer,
				const struct nhcadv_transfer *transfer, uint32_t op, uint32_t type,
				uint32_t offset, uint32_t length)
{
	struct nhca_rcxt_wr *wr = begin_accumulate(dv, peer, transfer, op, type);

	if (wr)
		put_part(dv, wr, transfer, offset, length);
}

void nhca_wr_set_channel_ops(struct nhca_channel *ch)
{
	struct ibv_qp_ex *ex = &ch->qp.vqp.qp_ex;

	nhca_wr_set_ops(&ch->qp, 0);
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ch->dv = (struct nhcadv_qp_ex){
		.wr_packet = wr_packet,
		.wr_write = wr_write,
		.wr_retransmit = wr_retransmit,
		.wr_read = wr_read,
		.wr_cancel = wr_cancel,
		.wr_probe = wr_probe,
		.wr_fence = wr_fence,
		.wr_move = wr_move,
		.wr_move_again = wr_move_again,
		.wr_part = wr_part,
		.wr_write_frames = wr_write_frames,
		.wr_frames_again = wr_frames_again,
		.wr_ask = wr_ask,
		.wr_ask_again = wr_ask_again,
		.wr_answer = wr_answer,
		.wr_read_frames = wr_read_frames,
		.wr_read_frames_again = wr_read_frames_again,
		.wr_accumulate = wr_accumulate,
		.wr_accumulate_again = wr_accumulate_again,
	};
}

struct nhcadv_qp_ex *nhcadv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *ibqp)
{
	int ret = nhca_check_channel(&ibqp->qp_base);

	if (ret) {
		errno = ret;
		return NULL;
	}
	return &to_nch(&ibqp->qp_base)->dv;
}
