// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_half DEVICE [GID-INDEX]: half transfers between a writer and a peer.
 *
 * 1. Half-send write: the writer sends a column of a matrix, whose bytes are neither contiguous nor
 *    registered, into the memory of the peer.
 * 2. Half-receive write: the writer writes a vector.  The peer adds each packet to its own vector
 *    when the packet arrives in its receive FIFO.
 * 3. Half-send read: the peer requests another column, which the writer gathers.
 * 4. Half-receive read: the peer reads the vector into its receive FIFO, and adds the packets.  The
 *    program of the writer does nothing.
 *
 * If a completion does not come in time, the end that sends probes the other end, and sends the
 * missing packets again.  In step 4 the peer requests the missing packets again.  Here writer and
 * peer are channels of the same device.  On two hosts, their programs would exchange the QP number,
 * key, rCxt and PVO of each end, for example over a TCP connection.
 *
 *	cc -o nhcadv_half nhcadv_half.c example.c -lnhca -libverbs
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>

#include "example.h"

#define ROWS	4000
#define COLUMNS	16
#define COLUMN	5
#define ASKED	11				/* column that the peer reads */
#define SEGMENT	1024u
#define NUMBERS	(SEGMENT / sizeof(double))	/* numbers in a packet */
#define LENGTH	(ROWS * (uint32_t)sizeof(double))
#define PACKETS	((LENGTH + SEGMENT - 1) / SEGMENT)
#define FRAMES	16				/* fewer than the packets of a transfer */
#define TIMEOUT_MS 100	/* milliseconds without a completion before a probe */
#define TRIES	500	/* timeouts before the program gives up */

enum form { PARTS, TO_FRAMES, ANSWER };

static double matrix[ROWS][COLUMNS], sum[ROWS];

/* ---- the writer ---- */

/* Send packet @i of a column, one buffer for each row. */
static void send_part(struct end *writer, const struct nhcadv_peer *peer,
		      const struct nhcadv_transfer *t, enum form form, uint32_t i)
{
	uint32_t column = form == ANSWER ? ASKED : COLUMN;
	struct ibv_data_buf rows[NUMBERS];
	uint32_t row = i * NUMBERS, n;

	for (n = 0; n < NUMBERS && row + n < ROWS; n++) {
		rows[n].addr = &matrix[row + n][column];
		rows[n].length = sizeof(double);
	}
	ibv_wr_start(writer->qpx);
	writer->qpx->wr_flags = 0;
	if (form == ANSWER)
		nhcadv_wr_answer(writer->dv, peer, t, i * SEGMENT, n, rows);
	else
		nhcadv_wr_part(writer->dv, peer, t, i * SEGMENT, n, rows);
	check(ibv_wr_complete(writer->qpx), "a part");
}

static void send_packet(struct end *writer, const struct nhcadv_peer *peer,
			const struct nhcadv_transfer *t, enum form form, uint32_t i)
{
	uint32_t offset = i * SEGMENT, left = LENGTH - offset;

	if (form != TO_FRAMES) {
		send_part(writer, peer, t, form, i);
		return;
	}
	ibv_wr_start(writer->qpx);
	writer->qpx->wr_flags = 0;
	nhcadv_wr_frames_again(writer->dv, peer, t, offset, left < SEGMENT ? left : SEGMENT);
	check(ibv_wr_complete(writer->qpx), "a repetition");
}

static void begin(struct end *writer, const struct nhcadv_peer *peer,
		  const struct nhcadv_transfer *t, enum form form)
{
	uint32_t i;

	for (i = 0; form != TO_FRAMES && i < PACKETS; i++)
		send_part(writer, peer, t, form, i);
	if (form != TO_FRAMES)
		return;
	ibv_wr_start(writer->qpx);
	writer->qpx->wr_flags = 0;
	nhcadv_wr_write_frames(writer->dv, peer, t);
	check(ibv_wr_complete(writer->qpx), "a write to frames");
}

/* Return: true if the frame says that the transfer is complete.  Otherwise send what is missing. */
static bool look_at(struct end *writer, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *t, enum form form,
		    const struct nhcadv_frame *status)
{
	uint32_t i, sent = 0;

	if (status->kind != NHCADV_FRAME_STATUS || status->tid != t->tid)
		return false;
	if (status->status == NHCADV_TRANSFER_COMPLETE)
		return true;
	if (status->status == NHCADV_TRANSFER_PROT_ERR)
		errx(1, "memory protection has refused the transfer");
	/* not more at a time than the FIFO of the peer has room for */
	for (i = 0; i < PACKETS && sent < FRAMES; i++)
		if (!nhcadv_frame_has(status, i)) {
			send_packet(writer, peer, t, form, i);
			sent++;
		}
	return false;
}

/* ---- the peer ---- */

/* Add the packets that have arrived to the vector.  Return: true if the transfer is complete. */
static bool peer_runs(struct end *peer)
{
	const struct nhcadv_frame *frame;
	uint32_t index, first, i;
	int kind;

	for (;;) {
		kind = poll_kind(peer, &index);
		if (kind == NHCADV_WC_REMOTE_WRITE)
			return true;
		if (kind != NHCADV_WC_FRAME)
			return false;
		frame = nhcadv_frame(peer->qp, index);
		if (frame->kind == NHCADV_FRAME_WRITE) {
			first = frame->offset / sizeof(double);
			for (i = 0; i < frame->length / sizeof(double); i++)
				sum[first + i] += ((const double *)frame->data)[i];
		}
		check(nhcadv_release_frame(peer->qp, index), "nhcadv_release_frame");
	}
}

/* Execute a transfer: both programs run in turns. */
static void transfer(struct end *writer, struct end *to, const struct nhcadv_peer *peer,
		     const struct nhcadv_transfer *t, enum form form)
{
	bool written = false, told = false;
	int tries = 0, wait = 0, kind;
	uint32_t index;

	begin(writer, peer, t, form);
	while (!written || !told) {
		told |= peer_runs(to);
		kind = poll_kind(writer, &index);
		if (kind == NHCADV_WC_WRITE) {
			written = true;
		} else if (kind == NHCADV_WC_FRAME) {
			written |= look_at(writer, peer, t, form, nhcadv_frame(writer->qp, index));
			check(nhcadv_release_frame(writer->qp, index), "nhcadv_release_frame");
		} else if (kind < 0 && ++wait < TIMEOUT_MS) {
			poll(NULL, 0, 1);
		} else if (kind < 0) {
			if (++tries > TRIES)
				errx(1, "the transfer did not complete in time");
			probe(writer, peer, t);
			wait = 0;
		}
	}
}

static void ask(struct end *reader, const struct nhcadv_peer *peer,
		const struct nhcadv_transfer *t, bool again)
{
	ibv_wr_start(reader->qpx);
	reader->qpx->wr_flags = 0;
	if (again)
		nhcadv_wr_ask_again(reader->dv, peer, t);
	else
		nhcadv_wr_ask(reader->dv, peer, t);
	check(ibv_wr_complete(reader->qpx), "a request");
}

/*
 * Handle one completion of the writer: answer the request of the reader, or send missing packets
 * again after a status.
 * @answer: the transfer; its tid is 0 as long as there is no request
 * Return: true if the reader has all bytes.
 */
static bool writer_runs(struct end *writer, const struct nhcadv_peer *reader,
			struct nhcadv_transfer *answer)
{
	const struct nhcadv_frame *frame;
	bool complete = false;
	uint32_t index;
	int kind;

	kind = poll_kind(writer, &index);
	if (kind != NHCADV_WC_FRAME)
		return kind == NHCADV_WC_REMOTE_READ;
	frame = nhcadv_frame(writer->qp, index);
	if (frame->kind == NHCADV_FRAME_REQUEST) {
		/* remote_pvo could be the name of a file or table: here it is the column */
		if (nhcadv_frame_request(frame).remote_pvo != ASKED || frame->total != LENGTH ||
		    frame->segment != SEGMENT)
			errx(1, "the request names another column or size");
		*answer = (struct nhcadv_transfer){
			.local_rcxt = frame->rcxt, .remote_rcxt = frame->src_rcxt,
			.remote_pvo = nhcadv_frame_request(frame).reply_pvo,
			.tid = frame->tid, .total = frame->total, .segment = frame->segment,
		};
		begin(writer, reader, answer, ANSWER);
	} else if (answer->tid) {
		complete = look_at(writer, reader, answer, ANSWER, frame);
	}
	check(nhcadv_release_frame(writer->qp, index), "nhcadv_release_frame");
	return complete;
}

/* Read what the program of the writer gathers: both programs run in turns. */
static void read_answer(struct end *reader, const struct nhcadv_peer *writer_peer,
			struct end *writer, const struct nhcadv_peer *reader_peer,
			const struct nhcadv_transfer *t)
{
	struct nhcadv_transfer answer = {};
	bool has_read = false, told = false;
	int tries = 0, wait = 0;
	uint32_t index;

	ask(reader, writer_peer, t, false);
	while (!has_read || !told) {
		has_read |= poll_kind(reader, &index) == NHCADV_WC_READ;
		told |= writer_runs(writer, reader_peer, &answer);
		if (++wait < TIMEOUT_MS) {
			poll(NULL, 0, 1);
			continue;
		}
		if (++tries > TRIES)
			errx(1, "the read did not complete in time");
		/* the request may be lost, or packets of the answer */
		if (!has_read)
			ask(reader, writer_peer, t, true);
		if (!told && answer.tid)
			probe(writer, reader_peer, &answer);
		wait = 0;
	}
}

/* ---- the peer reads into its FIFO ---- */

static bool has[PACKETS];	/* packets of the read that had a frame */

/*
 * Request missing packets, from the first missing packet on, at most as many as the FIFO has room
 * for.
 * @first: this is the first request of the read
 */
static void request(struct end *reader, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *t, bool first)
{
	uint32_t i = 0, end, length;

	while (has[i])
		i++;
	for (end = i + 1; end < PACKETS && end - i < FRAMES && !has[end];)
		end++;
	length = (end == PACKETS ? LENGTH : end * SEGMENT) - i * SEGMENT;
	ibv_wr_start(reader->qpx);
	reader->qpx->wr_flags = 0;
	if (first)
		nhcadv_wr_read_frames(reader->dv, peer, t, length);
	else
		nhcadv_wr_read_frames_again(reader->dv, peer, t, i * SEGMENT, length);
	check(ibv_wr_complete(reader->qpx), "a read to frames");
}

static void read_frames(struct end *reader, const struct nhcadv_peer *peer,
			const struct nhcadv_transfer *t)
{
	const struct nhcadv_frame *frame;
	uint32_t index, frames = 0, i;
	int tries = 0, wait = 0, kind;

	request(reader, peer, t, true);
	while (frames < PACKETS) {
		kind = poll_kind(reader, &index);
		if (kind == NHCADV_WC_FRAME) {
			frame = nhcadv_frame(reader->qp, index);
			if (frame->kind == NHCADV_FRAME_READ && frame->tid == t->tid) {
				for (i = 0; i < frame->length / sizeof(double); i++)
					sum[frame->offset / sizeof(double) + i] +=
						((const double *)frame->data)[i];
				has[frame->offset / SEGMENT] = true;
				frames++;
				/* all packets of the request have come: request the next ones */
				if (frames % FRAMES == 0 && frames < PACKETS)
					wait = TIMEOUT_MS;
			}
			check(nhcadv_release_frame(reader->qp, index), "nhcadv_release_frame");
		} else if (kind < 0 && ++wait < TIMEOUT_MS) {
			poll(NULL, 0, 1);
		} else if (kind < 0) {
			if (++tries > TRIES)
				errx(1, "the read did not complete in time");
			request(reader, peer, t, false);
			wait = 0;
		}
	}
}

int main(int argc, char **argv)
{
	struct end_attr attr = {
		.work_requests = 64, .frames = FRAMES, .inline_data = SEGMENT + NHCADV_PART_HEADER,
		.rcxts = 1, .length = LENGTH,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	struct nhcadv_peer peer, back;
	struct nhcadv_transfer t;
	struct end writer, to;
	double *vector, *column;
	struct device device;
	uint32_t i, j;

	open_device(&device, argc, argv, NHCADV_DEVICE_PART | NHCADV_DEVICE_FRAMES |
		    NHCADV_DEVICE_ASK | NHCADV_DEVICE_READ_FRAMES);
	create_end(&writer, &device, &attr);
	create_end(&to, &device, &attr);
	vector = writer.bytes;
	column = to.bytes;
	for (i = 0; i < ROWS; i++) {
		for (j = 0; j < COLUMNS; j++)
			matrix[i][j] = i * COLUMNS + j;
		vector[i] = i / 2.0;
		sum[i] = 1;
	}

	/* half-send write: a column of the matrix goes into the memory of the peer */
	peer = peer_of(&to, &device);
	t = (struct nhcadv_transfer){
		.local_rcxt = writer.rcxts[0], .remote_rcxt = to.rcxts[0], .remote_pvo = to.mem->pvo,
		.tid = 1, .total = LENGTH, .segment = SEGMENT,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
	transfer(&writer, &to, &peer, &t, PARTS);
	for (i = 0; i < ROWS; i++)
		if (column[i] != matrix[i][COLUMN])
			errx(1, "row %u of the column is wrong", i);
	printf("a column of %u numbers was written\n", ROWS);

	/* half-receive write: the peer adds the numbers to its own */
	t.tid = 2;
	t.local_pvo = writer.mem->pvo;
	t.remote_pvo = 0;
	transfer(&writer, &to, &peer, &t, TO_FRAMES);
	for (i = 0; i < ROWS; i++)
		if (sum[i] != 1 + i / 2.0)
			errx(1, "sum %u is wrong", i);
	printf("a vector of %u numbers was added\n", ROWS);

	/* half-send read: the peer requests a column, whose numbers the writer gathers */
	back = peer_of(&writer, &device);
	t = (struct nhcadv_transfer){
		.local_rcxt = to.rcxts[0], .remote_rcxt = writer.rcxts[0], .local_pvo = to.mem->pvo,
		.remote_pvo = ASKED, .tid = 3, .total = LENGTH, .segment = SEGMENT,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
	read_answer(&to, &back, &writer, &peer, &t);
	for (i = 0; i < ROWS; i++)
		if (column[i] != matrix[i][ASKED])
			errx(1, "row %u of the answer is wrong", i);
	printf("a column of %u numbers was gathered for a reader\n", ROWS);

	/* half-receive read: the peer adds the vector once more */
	t.tid = 4;
	t.local_pvo = 0;
	t.remote_pvo = writer.mem->pvo;
	read_frames(&to, &back, &t);
	for (i = 0; i < ROWS; i++)
		if (sum[i] != 1 + i)
			errx(1, "sum %u is wrong after the read", i);
	printf("a vector of %u numbers was read and added\n", ROWS);

	destroy_end(&writer);
	destroy_end(&to);
	close_device(&device);
	return 0;
}
