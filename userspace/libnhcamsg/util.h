/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef NHCA_MSG_UTIL_H
#define NHCA_MSG_UTIL_H

#include <stddef.h>

#define container_of(ptr, type, member)						\
	((type *)((char *)(ptr) - offsetof(type, member)))

/* These macros evaluate each argument once.  min_t() and max_t() convert both to a type first. */
#define min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(b) b_ = (b); a_ > b_ ? a_ : b_; })
#define min_t(t, a, b) ({ t a_ = (a); t b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(t, a, b) ({ t a_ = (a); t b_ = (b); a_ > b_ ? a_ : b_; })

#endif /* NHCA_MSG_UTIL_H */
