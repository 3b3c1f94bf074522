// SPDX-License-Identifier: GPL-2.0
/*
 * The valid order of request opcodes on a QP.  The fuzzer compiles this file in user space.
 */
#include "opseq.h"

bool nhca_opseq_len_ok(const struct nhca_opinfo *info, u32 payload, u32 mtu)
{
	u32 flags = info->flags;

	if (!(flags & NHCA_OPF_PAYLOAD))
		return !payload;
	if (!(flags & NHCA_OPF_LAST))
		return payload == mtu;
	if (!(flags & NHCA_OPF_FIRST) && !payload)
		return false;
	return payload <= mtu;
}
