/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A rule of fault injection: which fault it injects, into which items, and when. An item is a
 * packet, message, completion or memory region, depending on the place. The functions only decide
 * and access no skb, QP or lock. inject.h has the rules of a device.
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
	NHCA_FAULT_DELAY,		/* delay the packet by @arg milliseconds */
	NHCA_FAULT_DUPLICATE,
	NHCA_FAULT_REORDER,		/* let @arg later packets of the QP overtake the packet */
	NHCA_FAULT_CORRUPT,		/* invert one bit */
	NHCA_FAULT_LINK,		/* take the link down for @arg milliseconds */
	NHCA_FAULT_NAK,			/* refuse the request with the enum nhca_nak @arg */
	NHCA_FAULT_RNR,			/* treat the message as if no receive were posted */
	NHCA_FAULT_CQ,			/* lose the completion, as with a full CQ */
	NHCA_FAULT_MR,			/* let the registration fail with the errno @arg */
	NHCA_FAULT_KINDS
};

/* Places where rules are evaluated. A rule belongs to one place, and examines items only there. */
enum nhca_fault_point {
	NHCA_AT_SEND,		/* a QP or channel sends a packet; not for raw packet QPs */
	NHCA_AT_RECEIVE,	/* a packet for the device has arrived */
	NHCA_AT_REQUEST,	/* RC, XRC: a request with the expected PSN is to be executed */
	NHCA_AT_BUFFER,		/* RC, XRC, UC: a message needs a receive */
	NHCA_AT_CQE,		/* a completion of a QP or channel is about to be posted */
	NHCA_AT_MR,		/* a memory region is about to be created */
};

#define NHCA_FAULT_OPCODES	256
#define NHCA_OPCODE_NAME	40

/**
 * struct nhca_rule - a rule
 * @list:    in nhca_inject.rules, in the order of @id
 * @id:      number, for the command that removes the rule
 * @kind:    the fault
 * @at:      the place
 * @arg:     argument of the fault; see enum nhca_fault_kind
 * @qpn:     match only this QP or channel; 0: all
 * @opcode:  name that stands for @opcodes in the text of the rule; empty: match all opcodes
 * @opcodes: match only these BTH opcodes, unless @opcode is empty
 * @ppm:     probability of a hit, in millionths
 * @every:   hit each @every-th item of a stream, in place of @ppm; 0: @ppm decides
 * @framework: the device's struct fault_attr decides, in place of @ppm
 * @times:   hit at most @times items; 0: no limit
 * @seed:    seed of the random decisions
 * @now:     LINK: take the link down now; no rule is added
 * @place:   returns the position of a QPN in the order in which QPNs are allocated; NULL: QPNs are
 *           allocated in increasing order
 * @base:    position of the QPN that was the next to be allocated when the rule was added
 * @counts:  number of items examined in each stream, as a value entry; nhca_rule_stream() is the
 *           index of the entry
 * @seen:    number of items examined in all streams
 * @hits:    number of items hit in all streams
 *
 * nhca_inject.lock protects @list, @counts, @seen and @hits. The other members do not change
 * after the rule was added.
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
	u64 hits;
};

/**
 * nhca_rule_parse - parse the text of a rule
 * @r:    zeroed; the function sets the members that follow from the text
 * @text: KIND [ARGUMENT] [send|receive] [qp N] [opcode NAME] [probability P%] [every N] [times N]
 *        [seed N] [framework] [now]; the function modifies the text
 *
 * Context: any.
 * Return: 0; -EINVAL: the text is not a rule; -ERANGE: a number is out of its limits; -ENXIO: no
 * opcode has the name; -EOPNOTSUPP: the text has "framework", but the kernel is built without
 * CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
int nhca_rule_parse(struct nhca_rule *r, char *text);

/**
 * nhca_rule_show - print a line: number and text of a rule, number of items hit and examined
 * @r: the rule
 * @m: the file
 * Context: any.
 */
void nhca_rule_show(const struct nhca_rule *r, struct seq_file *m);

/**
 * nhca_rule_show_opcodes - print all names for opcodes, one a line
 * @m: the file
 * Context: any.
 */
void nhca_rule_show_opcodes(struct seq_file *m);

/**
 * nhca_rule_matches - check whether a rule is for an item
 * @r:      the rule
 * @at:     the place
 * @qpn:    QP or channel of the item; 0: none
 * @opcode: BTH opcode, at places that examine packets
 * Context: any.
 * Return: true if the rule is for the item.
 */
bool nhca_rule_matches(const struct nhca_rule *r, enum nhca_fault_point at, u32 qpn, u8 opcode);

/**
 * nhca_rule_stream - get the stream of an item
 * @r:      the rule
 * @qpn:    QP or channel of the item; 0: none
 * @opcode: BTH opcode
 *
 * A rule decides by the number of an item in its stream. When a test is repeated, its QPNs differ,
 * but it creates its QPs in the same order. So the stream depends on the position of the QP in this
 * order, and not on the QPN. Requester and responder of a QP may run on different CPUs, so requests
 * and responses are two streams.
 *
 * Context: any.
 * Return: two times the position of the QP, plus 1 for responses. The position counts from the QPN
 * that was the next to be allocated when the rule was added. Items without a QP (QPN 0), QP 1 and
 * multicast have no position: for these the function uses the QPN plus the number of positions.
 */
u32 nhca_rule_stream(const struct nhca_rule *r, u32 qpn, u8 opcode);

/**
 * nhca_rule_dice - get the random bits of an item
 * @r:      the rule
 * @stream: stream of the item
 * @n:      number of the item in its stream, from 0
 *
 * The bits are SipHash-2-4 of @n with @r->seed and @stream as the key, and are the same on every
 * kernel and machine.
 * Context: any.
 * Return: 64 bits.
 */
u64 nhca_rule_dice(const struct nhca_rule *r, u32 stream, unsigned long n);

/**
 * nhca_rule_hits - check whether a rule hits an item that it matches
 * @r:      the rule; @r->framework is false
 * @stream: stream of the item
 * @n:      number of the item in its stream, from 0
 *
 * The caller has checked that @r->times is not reached.
 * Context: any.
 * Return: true if the rule hits.
 */
bool nhca_rule_hits(const struct nhca_rule *r, u32 stream, unsigned long n);

#endif /* NHCA_OBSERVE_RULE_H */
