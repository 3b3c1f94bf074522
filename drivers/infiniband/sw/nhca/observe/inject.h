/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection: the rules of a device, and the functions with which other rooms evaluate them.
 * rule.h defines rules, items and places; nhca_rule_stream() defines streams. While no device of
 * the host has a rule, or a link that a rule has taken down, a call of nhca_inject() or
 * nhca_inject_at() costs one NOP (jump label).
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

/*
 * Places where rules examine packets. A device with a rule for one of them uses no batches,
 * no zero-copy, no same-host path and no piggybacked ACKs.
 */
#define NHCA_AT_PACKETS	(BIT(NHCA_AT_SEND) | BIT(NHCA_AT_RECEIVE) | BIT(NHCA_AT_REQUEST) | \
			 BIT(NHCA_AT_BUFFER))

/**
 * struct nhca_fault_hit - the decision of the rules
 * @kind: the fault, or NHCA_FAULT_NONE
 * @arg:  argument of the rule
 * @dice: random bits for the fault, for example to select the bit of a packet to invert; the n-th
 *        item of a stream gets the same bits each time that a test is repeated
 */
struct nhca_fault_hit {
	enum nhca_fault_kind kind;
	u32 arg;
	u32 dice;
};

/**
 * nhca_inject_create - create the struct for the rules of a device, without rules
 * @dev:  the device
 * @link: function of the link work, which takes the port down and up; the function must call
 *        nhca_inject_link()
 * Context: process.
 * Return: the struct; NULL: no memory.
 */
struct nhca_inject *nhca_inject_create(struct nhca_dev *dev, work_func_t link);

/**
 * nhca_inject_destroy - wait for the link work, and free the rules of a device
 * @inj: the rules, which no other code uses any more; or NULL
 * Context: process, sleeps.
 */
void nhca_inject_destroy(struct nhca_inject *inj);

/**
 * nhca_inject_work_dev - get the device of a link work
 * @work: the work of nhca_inject_create()
 * Context: any.
 * Return: the device.
 */
struct nhca_dev *nhca_inject_work_dev(struct work_struct *work);

/**
 * nhca_inject_link - keep the link down for the time that its rule says, and then take it up
 * @inj: the rules of the device
 *
 * The link work calls this function twice: when a rule has taken the link down, and after the time
 * of the rule. The first call schedules the work again; the second call takes the link up. After
 * each call, the work updates the port's state: down as long as nhca_inject_down() returns true.
 * Context: process.
 */
void nhca_inject_link(struct nhca_inject *inj);

/**
 * nhca_inject_write - execute a command: "add RULE", "remove ID" or "clear"
 * @inj:   the rules of the device
 * @text:  the command, which is modified
 * @base:  position of the next QPN in the order in which QPNs are allocated
 * @place: returns the position of a QPN in that order
 *
 * Context: process, sleeps.
 * Return: 0; -EINVAL: @text is not a command, or ID is not a number; -ERANGE: ID does not fit into
 * 32 bits; -ENOENT: no rule has the number ID; -ENOSPC: the device has 64 rules already; -ENOMEM:
 * no memory; errors of nhca_rule_parse().
 */
int nhca_inject_write(struct nhca_inject *inj, char *text, u32 base, u32 (*place)(u32 qpn));

/**
 * nhca_inject_show - print the rules, one a line
 * @inj: the rules of the device
 * @m:   the file
 * Context: process, sleeps.
 */
void nhca_inject_show(struct nhca_inject *inj, struct seq_file *m);

/**
 * nhca_inject_debugfs - create files for the settings of the kernel's fault injection framework
 * (nothing if the kernel is built without CONFIG_FAULT_INJECTION_DEBUG_FS)
 * @inj: the rules of the device
 * @dir: directory of the device
 * Context: process.
 */
void nhca_inject_debugfs(struct nhca_inject *inj, struct dentry *dir);

/**
 * nhca_inject_wanted - the part of nhca_inject_at() that runs while nhca_inject_key is enabled
 * @inj:    the rules of the device
 * @points: BIT() of each place
 * Context: any.
 * Return: true if a rule is for one of @points, or has taken the link down.
 */
bool nhca_inject_wanted(const struct nhca_inject *inj, unsigned long points);

/**
 * nhca_inject_at - check whether a fault may happen at some places
 * @dev:    the device
 * @points: BIT() of each place
 * Context: any.
 * Return: true if a rule of @dev is for one of @points, or has taken the link down.
 */
static inline bool nhca_inject_at(const struct nhca_dev *dev, unsigned long points)
{
	return static_branch_unlikely(&nhca_inject_key) && nhca_inject_wanted(dev->inject, points);
}

/**
 * nhca_inject_down - check whether a rule has taken the link of a device down
 * @dev: the device
 * Context: any.
 * Return: true if a rule has taken the link down.
 */
bool nhca_inject_down(const struct nhca_dev *dev);

/**
 * nhca_inject_eval - evaluate the rules of a device for an item, in the order of their numbers
 * @dev:    the device
 * @at:     the place
 * @qpn:    QP or channel of the device; 0: none
 * @opcode: BTH opcode; 0 if there is no packet
 * @s:      set to the decision
 *
 * The first rule that hits the item ends the evaluation; later rules do not examine the item.
 * Context: any, also with locks held; only after nhca_inject_at() has returned true.
 * Return: @s->kind.
 */
enum nhca_fault_kind nhca_inject_eval(struct nhca_dev *dev, enum nhca_fault_point at, u32 qpn,
				      u8 opcode, struct nhca_fault_hit *s);

/**
 * nhca_inject - check one place with nhca_inject_at(), and then evaluate the rules
 * @dev:    the device
 * @at:     the place
 * @qpn:    QP or channel of the device; 0: none
 * @opcode: BTH opcode; 0 if there is no packet
 * @s:      set to the decision, if the function returns true
 * Context: any, also with locks held.
 * Return: true if a fault must be injected.
 */
static inline bool nhca_inject(struct nhca_dev *dev, enum nhca_fault_point at, u32 qpn, u8 opcode,
			       struct nhca_fault_hit *s)
{
	return nhca_inject_at(dev, BIT(at)) && nhca_inject_eval(dev, at, qpn, opcode, s);
}

#endif /* NHCA_OBSERVE_INJECT_H */
