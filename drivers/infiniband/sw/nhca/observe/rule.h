/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rule of fault injection: what goes wrong, for whom and when.  It decides, and touches no skb,
 * no QP and no lock; inject.h has the rules of a device.
 */
#ifndef NHCA_OBSERVE_RULE_H
#define NHCA_OBSERVE_RULE_H

#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct seq_file;

enum nhca_fault_kind {
	NHCA_FAULT_NONE = 0,
	NHCA_FAULT_DROP,
	NHCA_FAULT_DELAY,		/* by milliseconds */
	NHCA_FAULT_DUPLICATE,
	NHCA_FAULT_REORDER,		/* behind so many later packets of the QP */
	NHCA_FAULT_CORRUPT,		/* a bit of it */
	NHCA_FAULT_LINK,		/* down for milliseconds */
	NHCA_FAULT_NAK,			/* enum nhca_nak */
	NHCA_FAULT_RNR,
	NHCA_FAULT_CQ,			/* finds no room for a completion */
	NHCA_FAULT_MR,			/* cannot be registered: an errno */
	NHCA_FAULT_KINDS
};

/* Where rules are asked.  Each has its place, and sees only what comes there. */
enum nhca_fault_point {
	NHCA_AT_SEND,		/* a packet leaves a QP */
	NHCA_AT_RECEIVE,	/* a packet has come for a QP */
	NHCA_AT_REQUEST,	/* RC: a request with the expected PSN is about to be executed */
	NHCA_AT_BUFFER,		/* RC, UC: a message wants a receive request */
	NHCA_AT_CQE,		/* a completion of a QP is about to be posted */
	NHCA_AT_MR,		/* a region is about to be made */
};

#define NHCA_FAULT_OPCODES	256
#define NHCA_OPCODE_NAME	40

/**
 * struct nhca_rule - a rule
 * @list:    in its device's list, in the order of @id
 * @id:      number by which it is removed
 * @kind, @at: what goes wrong, where
 * @arg:     as the kind wants it; see enum nhca_fault_kind
 * @qpn:     the one QP that it is for; 0: any
 * @opcode:  as it was given, or an empty string for any
 * @opcodes: the BTH opcodes that it is for
 * @ppm:     how many of a million of what it sees it strikes
 * @every:   instead: one in so many; 0: @ppm says it
 * @framework: instead: the kernel's struct fault_attr of the device says it
 * @times:   then it is spent; 0: never
 * @seed:    of its decisions
 * @now:     LINK: at once, and there is no rule
 * @place:   where in the order in which QPNs are given out a QPN is; NULL: they count up
 * @base:    place of the QPN that was the next when the rule was made
 * @counts:  what it has seen of each stream, by nhca_rule_stream(): numbers as value entries
 * @seen, @struck: in all
 */
struct nhca_rule {
	struct list_head list;
	u32 id;
	enum nhca_fault_kind kind;
	enum nhca_fault_point at;
	u32 arg;
	u32 qpn;
	char opcode[NHCA_OPCODE_NAME];
	DECLARE_BITMAP(opcodes, NHCA_FAULT_OPCODES);
	u32 ppm;
	u32 every;
	bool framework;
	u32 times;
	u64 seed;
	bool now;
	u32 (*place)(u32 qpn);
	u32 base;
	struct xarray counts;
	u64 seen;
	u64 struck;
};

/**
 * nhca_rule_parse - make a rule of words
 * @r:    zeroed; filled in as far as the words say
 * @text: KIND [ARGUMENT] [send|receive] [qp N] [opcode NAME] [probability P%] [every N] [times N]
 *        [seed N] [framework] [now]; is cut up
 *
 * Context: any.
 * Return: 0; -EINVAL: not a rule; -ERANGE: a number beyond its limits; -ENXIO: no such opcode;
 * -EOPNOTSUPP: this kernel has no fault-injection framework.
 */
int nhca_rule_parse(struct nhca_rule *r, char *text);

/* the rule in the same words, and its counts; one line */
void nhca_rule_show(const struct nhca_rule *r, struct seq_file *m);

/* every name that stands for opcodes, a line each */
void nhca_rule_show_opcodes(struct seq_file *m);

/* does the rule look at such a thing?  @opcode: BTH; only where packets are seen */
bool nhca_rule_matches(const struct nhca_rule *r, enum nhca_fault_point at, u32 qpn, u8 opcode);

/**
 * nhca_rule_stream - which sequence of things a packet belongs to
 *
 * Decisions repeat if what they depend on repeats.  QPNs do not, but the order in which QPs are
 * made does; and the two engines of a QP run on CPUs of their own, so that what they send is two
 * sequences.
 *
 * Return: the place of the QP among those made since the rule was, times 2; plus 1 for answers.
 */
u32 nhca_rule_stream(const struct nhca_rule *r, u32 qpn, u8 opcode);

/**
 * nhca_rule_dice - 64 bits that depend on seed, stream and number of a thing, and nothing else
 * SipHash-2-4: the same on every kernel and machine.
 */
u64 nhca_rule_dice(const struct nhca_rule *r, u32 stream, unsigned long n);

/**
 * nhca_rule_hits - does the rule hit the thing number @n, from 0, of its stream?
 * Not for rules with @framework.  That it may be spent is the caller's business.
 */
bool nhca_rule_hits(const struct nhca_rule *r, u32 stream, unsigned long n);

#endif /* NHCA_OBSERVE_RULE_H */
