// SPDX-License-Identifier: GPL-2.0
/* The tracepoints of channels. */
#define CREATE_TRACE_POINTS
#include "trace_channel.h"
