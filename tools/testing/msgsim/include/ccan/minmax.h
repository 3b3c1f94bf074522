/* SPDX-License-Identifier: GPL-2.0 */
/* The part of ccan/minmax.h of rdma-core that libnhca uses */
#ifndef MSGSIM_MINMAX_H
#define MSGSIM_MINMAX_H

#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define min_t(t, a, b) ({ t a_ = (a); t b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(t, a, b) ({ t a_ = (a); t b_ = (b); a_ > b_ ? a_ : b_; })

#endif /* MSGSIM_MINMAX_H */
