/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Marks between which `lab run --profile' counts the instructions of a guest. The marks are NOPs of
 * seven bytes that occur in no other code. lab/instructions.c looks for them.
 */
#ifndef PROFILE_H
#define PROFILE_H

#ifdef __x86_64__
static inline void profile_begin(void)
{
	/* nopl 0x68616331(%rax) */
	asm volatile(".byte 0x0f, 0x1f, 0x80, 0x31, 0x63, 0x61, 0x68" : : : "memory");
}

static inline void profile_end(void)
{
	/* nopl 0x68616330(%rax) */
	asm volatile(".byte 0x0f, 0x1f, 0x80, 0x30, 0x63, 0x61, 0x68" : : : "memory");
}
#else
static inline void profile_begin(void) { }
static inline void profile_end(void) { }
#endif

#endif /* PROFILE_H */
