/* SPDX-License-Identifier: GPL-2.0 */
#include "../../../../../userspace/libnhca/nhcadv.h"
