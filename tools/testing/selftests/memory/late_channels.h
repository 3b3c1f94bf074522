/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A part of late_reads.c: channels.  A buffer is returned to its owner by one of these events: a
 * notice; a status, if the notice is lost; the completion of a work request without a notice; a
 * cancel; the close of the channel; or, for a buffer that the peer reads, deregistration.
 */
#ifndef LATE_CHANNELS_H
#define LATE_CHANNELS_H

#include "channels.h"
#include "late_reads.h"

enum ending {
	SUCCESS, FLUSH, RESET, DESTROY, DEREG,
	/* RETRY to READ_WINDOW are for RC only */
	RETRY, RNR, ACCESS, READ_DEREG, READ_WINDOW,
	ENDINGS,
	CH_NOTICE = ENDINGS, CH_STATUS, CH_POSTED, CH_CANCEL, CH_CLOSE, CH_READ,
	ALL_ENDINGS,
};

#define CH_JOB		4716
#define CH_MEMORY	(RCXTS * SLOT)

extern const char * const ending_names[ALL_ENDINGS];

void channels_make(void);
void channels_batch(void);
void channels_check(void);

#endif /* LATE_CHANNELS_H */
