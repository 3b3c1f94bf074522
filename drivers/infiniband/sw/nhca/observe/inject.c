// SPDX-License-Identifier: GPL-2.0
/* Fault injection: the rules of a device, their counts, and the link that a rule takes down. */
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
/* fault-inject.h of Linux 6.1 does not include all headers that it needs */
#include <linux/fault-inject.h>

#include "inject.h"
#include "trace.h"

#define NHCA_MAX_RULES	64

DEFINE_STATIC_KEY_FALSE(nhca_inject_key);

/**
 * struct nhca_inject - the rules of a device
 * @dev:    the device
 * @writer: serializes commands
 * @lock:   irqsave; protects the counts of the rules; held with @writer to change @rules
 * @rules:  struct nhca_rule, in the order of their numbers
 * @nrules: number of rules; @writer protects it
 * @next:   number of the next rule; @writer protects it
 * @points: BIT() of each place that has a rule; written with @writer held, read without a lock
 * @attr:   settings of the kernel's fault injection framework
 * @link:   link work, which takes the port down and up
 * @link_ms: milliseconds that the link is down; 0: the link is up, and the link work has ended
 * @link_key: the link work has incremented nhca_inject_key, and has not decremented it yet
 * @down:   the link is down; read without a lock
 */
struct nhca_inject {
	struct nhca_dev *dev;
	/* serializes commands */
	struct mutex writer;
	/* irqsave; protects the rules and their counts */
	spinlock_t lock;
	struct list_head rules;
	u32 nrules;
	u32 next;
	unsigned long points;
#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
	struct fault_attr attr;
#endif
	struct delayed_work link;
	u32 link_ms;
	bool link_key;
	bool down;
};

/* ---- the kernel's fault injection framework, which few distributions build ---- */

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
static void framework_init(struct nhca_inject *inj)
{
	static const DECLARE_FAULT_ATTR(initial);

	inj->attr = initial;
}

static bool framework_hits(struct nhca_inject *inj)
{
	return should_fail(&inj->attr, 1);
}

void nhca_inject_debugfs(struct nhca_inject *inj, struct dentry *dir)
{
	fault_create_debugfs_attr("fault_attr", dir, &inj->attr);
}
#else
static void framework_init(struct nhca_inject *inj)
{
}

static bool framework_hits(struct nhca_inject *inj)
{
	return false;
}

void nhca_inject_debugfs(struct nhca_inject *inj, struct dentry *dir)
{
}
#endif

struct nhca_inject *nhca_inject_create(struct nhca_dev *dev, work_func_t link)
{
	struct nhca_inject *inj = kzalloc(sizeof(*inj), GFP_KERNEL);

	if (!inj)
		return NULL;
	inj->dev = dev;
	inj->next = 1;
	mutex_init(&inj->writer);
	spin_lock_init(&inj->lock);
	INIT_LIST_HEAD(&inj->rules);
	INIT_DELAYED_WORK(&inj->link, link);
	framework_init(inj);
	return inj;
}

/* ---- the link ---- */

struct nhca_dev *nhca_inject_work_dev(struct work_struct *work)
{
	return container_of(to_delayed_work(work), struct nhca_inject, link)->dev;
}

/*
 * Take the link down for @ms milliseconds.  Packets are dropped at the latest when the link work
 * has enabled nhca_inject_key; the work also changes the port's state.
 */
static void inject_link(struct nhca_inject *inj, u32 ms)
{
	/* while the link is down, further rules do not change how long it stays down */
	if (cmpxchg(&inj->link_ms, 0, ms))
		return;
	WRITE_ONCE(inj->down, true);
	schedule_delayed_work(&inj->link, 0);
}

void nhca_inject_link(struct nhca_inject *inj)
{
	if (!inj->link_key) {
		inj->link_key = true;
		static_branch_inc(&nhca_inject_key);
		schedule_delayed_work(&inj->link, msecs_to_jiffies(inj->link_ms));
	} else {
		WRITE_ONCE(inj->down, false);
		static_branch_dec(&nhca_inject_key);
		inj->link_key = false;
		/*
		 * pairs with cmpxchg() in inject_link(): a rule that finds link_ms 0 also finds
		 * link_key and down false
		 */
		smp_store_release(&inj->link_ms, 0);
	}
}

bool nhca_inject_down(const struct nhca_dev *dev)
{
	return READ_ONCE(dev->inject->down);
}

/* ---- commands ---- */

static void inject_points(struct nhca_inject *inj)
{
	unsigned long points = 0;
	struct nhca_rule *r;

	list_for_each_entry(r, &inj->rules, list)
		points |= BIT(r->at);
	WRITE_ONCE(inj->points, points);
}

static int inject_add(struct nhca_inject *inj, char *text, u32 base,
		      u32 (*place)(u32 qpn))
{
	struct nhca_rule *r = kzalloc(sizeof(*r), GFP_KERNEL);
	int err;

	if (!r)
		return -ENOMEM;
	err = nhca_rule_parse(r, text);
	if (!err && inj->nrules == NHCA_MAX_RULES)
		err = -ENOSPC;
	if (!err && r->now)
		inject_link(inj, r->arg);
	if (err || r->now) {
		kfree(r);
		return err;
	}
	r->id = inj->next++;
	r->base = base;
	r->place = place;
	xa_init(&r->counts);
	inj->nrules++;
	spin_lock_irq(&inj->lock);
	list_add_tail(&r->list, &inj->rules);
	spin_unlock_irq(&inj->lock);
	static_branch_inc(&nhca_inject_key);
	return 0;
}

static void inject_remove(struct nhca_inject *inj, struct nhca_rule *r)
{
	static_branch_dec(&nhca_inject_key);
	spin_lock_irq(&inj->lock);
	list_del(&r->list);
	spin_unlock_irq(&inj->lock);
	inj->nrules--;
	xa_destroy(&r->counts);
	kfree(r);
}

static int inject_remove_id(struct nhca_inject *inj, const char *text)
{
	struct nhca_rule *r;
	u32 id;
	int err;

	err = kstrtou32(text, 0, &id);
	if (err)
		return err;
	list_for_each_entry(r, &inj->rules, list) {
		if (r->id == id) {
			inject_remove(inj, r);
			return 0;
		}
	}
	return -ENOENT;
}

static void inject_clear(struct nhca_inject *inj)
{
	struct nhca_rule *r, *next;

	list_for_each_entry_safe(r, next, &inj->rules, list)
		inject_remove(inj, r);
	/* restart the numbers, so that the same commands add rules with the same numbers */
	inj->next = 1;
}

int nhca_inject_write(struct nhca_inject *inj, char *text, u32 base, u32 (*place)(u32 qpn))
{
	const char *command;
	int err = 0;

	text = strim(text);
	command = strsep(&text, " ");
	mutex_lock(&inj->writer);
	if (!strcmp(command, "add") && text)
		err = inject_add(inj, text, base, place);
	else if (!strcmp(command, "remove") && text)
		err = inject_remove_id(inj, text);
	else if (!strcmp(command, "clear") && !text)
		inject_clear(inj);
	else
		err = -EINVAL;
	inject_points(inj);
	mutex_unlock(&inj->writer);
	return err;
}

void nhca_inject_show(struct nhca_inject *inj, struct seq_file *m)
{
	struct nhca_rule *r;

	mutex_lock(&inj->writer);
	list_for_each_entry(r, &inj->rules, list)
		nhca_rule_show(r, m);
	mutex_unlock(&inj->writer);
}

void nhca_inject_destroy(struct nhca_inject *inj)
{
	if (!inj)
		return;
	cancel_delayed_work_sync(&inj->link);
	if (inj->link_key)
		static_branch_dec(&nhca_inject_key);
	inject_clear(inj);
	kfree(inj);
}

/* ---- evaluation ---- */

bool nhca_inject_wanted(const struct nhca_inject *inj, unsigned long points)
{
	return (READ_ONCE(inj->points) & points) || READ_ONCE(inj->down);
}

/*
 * Let the rule @r examine an item that it matches.
 * @n: set to the number of items of @stream that @r has examined before
 * Return: true if @r hits the item.
 */
static bool inject_hits(struct nhca_inject *inj, struct nhca_rule *r, u32 stream,
			unsigned long *n)
{
	void *seen;

	if (r->times && r->hits >= r->times)
		return false;
	seen = xa_load(&r->counts, stream);
	*n = seen ? xa_to_value(seen) : 0;
	/* without memory for the count, the rule does not examine the item */
	if (xa_is_err(xa_store(&r->counts, stream, xa_mk_value(*n + 1), GFP_ATOMIC)))
		return false;
	r->seen++;
	if (r->framework ? !framework_hits(inj) : !nhca_rule_hits(r, stream, *n))
		return false;
	r->hits++;
	return true;
}

enum nhca_fault_kind nhca_inject_eval(struct nhca_dev *dev, enum nhca_fault_point at, u32 qpn,
				      u8 opcode, struct nhca_fault_hit *s)
{
	struct nhca_inject *inj = dev->inject;
	struct nhca_rule *r;
	unsigned long flags;
	unsigned long n;
	u32 stream;

	s->kind = NHCA_FAULT_NONE;
	spin_lock_irqsave(&inj->lock, flags);
	list_for_each_entry(r, &inj->rules, list) {
		if (!nhca_rule_matches(r, at, qpn, opcode))
			continue;
		stream = nhca_rule_stream(r, qpn, opcode);
		if (!inject_hits(inj, r, stream, &n))
			continue;
		s->kind = r->kind;
		s->arg = r->arg;
		s->dice = nhca_rule_dice(r, stream, n) >> 32;
		trace_nhca_fault(&dev->ibdev, qpn, r->id, at, opcode, n);
		break;
	}
	spin_unlock_irqrestore(&inj->lock, flags);
	if (s->kind == NHCA_FAULT_LINK)
		inject_link(inj, s->arg);
	return s->kind;
}
