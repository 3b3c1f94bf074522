// SPDX-License-Identifier: GPL-2.0
/* The tracepoints of regions of files. */
#define CREATE_TRACE_POINTS
#include "trace_direct.h"
