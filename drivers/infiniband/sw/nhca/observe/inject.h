/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: the rules of a device, and the questions that other rooms ask them.  As long
 * as no device of the host has a rule, a question costs a jump label.
 */
#ifndef NHCA_OBSERVE_INJECT_H
#define NHCA_OBSERVE_INJECT_H

#include <linux/bits.h>
#include <linux/jump_label.h>
#include <linux/workqueue.h>

#include "../nhca.h"
#include "rule.h"

struct dentry;
struct nhca_inject;
struct seq_file;

DECLARE_STATIC_KEY_FALSE(nhca_inject_key);

/* points at which the packets of a device are looked at one by one, and none does without */
#define NHCA_AT_PACKETS	(BIT(NHCA_AT_SEND) | BIT(NHCA_AT_RECEIVE) | BIT(NHCA_AT_REQUEST) | \
			 BIT(NHCA_AT_BUFFER))

/**
 * struct nhca_fault_hit - what a rule has decided
 * @kind: NHCA_FAULT_NONE: nothing
 * @arg:  of the rule
 * @dice: bits to choose by, which repeat as the decision does
 */
struct nhca_fault_hit {
	enum nhca_fault_kind kind;
	u32 arg;
	u32 dice;
};

/**
 * nhca_inject_create - a device without rules
 * @link: work that takes the port down and up; runs nhca_inject_link()
 * Context: process.  Return: the rules, or NULL without memory.
 */
struct nhca_inject *nhca_inject_create(struct nhca_dev *dev, work_func_t link);

/* waits for @link; nobody asks any more; process; NULL is fine */
void nhca_inject_destroy(struct nhca_inject *inj);

/* the device whose link @work is about */
struct nhca_dev *nhca_inject_work_dev(struct work_struct *work);

/**
 * nhca_inject_link - the next that happens to a link which a rule has struck: down, later up
 * Called by the work, which then tells the port what nhca_inject_down() says.
 * Context: process.
 */
void nhca_inject_link(struct nhca_inject *inj);

/**
 * nhca_inject_write - a command: "add RULE", "remove ID" or "clear"
 * @text: is cut up
 * @base: place of the next QPN in the order in which they are given out
 * @place: where in that order a QPN is
 *
 * Context: process.
 * Return: 0; as nhca_rule_parse(); -ENOENT: no rule @ID; -ENOSPC: too many rules; -ENOMEM.
 */
int nhca_inject_write(struct nhca_inject *inj, char *text, u32 base, u32 (*place)(u32 qpn));

/* the rules, a line each; process */
void nhca_inject_show(struct nhca_inject *inj, struct seq_file *m);

/* the knobs of the kernel's fault-injection framework, if it has one, in @dir; process */
void nhca_inject_debugfs(struct nhca_inject *inj, struct dentry *dir);

/* has a rule taken the link down, or does any look at one of @points (BIT())?  Behind the key. */
bool nhca_inject_wanted(const struct nhca_inject *inj, unsigned long points);

/**
 * nhca_inject_at - may there be a fault at one of @points (BIT())?
 * Context: any.
 */
static inline bool nhca_inject_at(const struct nhca_dev *dev, unsigned long points)
{
	return static_branch_unlikely(&nhca_inject_key) && nhca_inject_wanted(dev->inject, points);
}

/* has a rule taken the link of the device down?  Any context. */
bool nhca_inject_down(const struct nhca_dev *dev);

/**
 * nhca_inject_ask - offer something to the rules of a device, in their order
 * @at:     where
 * @qpn:    the device's QP; 0: of no QP
 * @opcode: BTH; 0 where there is no packet
 * @s:      what to do
 *
 * The first rule that strikes ends it: those behind do not see it.
 * Context: any; called behind nhca_inject_at(), with any lock held.
 * Return: @s->kind.
 */
enum nhca_fault_kind nhca_inject_ask(struct nhca_dev *dev, enum nhca_fault_point at, u32 qpn,
				     u8 opcode, struct nhca_fault_hit *s);

/* nhca_inject_at() and nhca_inject_ask() */
static inline bool nhca_inject(struct nhca_dev *dev, enum nhca_fault_point at, u32 qpn, u8 opcode,
			       struct nhca_fault_hit *s)
{
	return nhca_inject_at(dev, BIT(at)) && nhca_inject_ask(dev, at, qpn, opcode, s);
}

#endif /* NHCA_OBSERVE_INJECT_H */
