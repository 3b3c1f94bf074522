/* SPDX-License-Identifier: GPL-2.0 */
#include "../../../../../userspace/libnhcamsg/nhcadv_msg.h"
