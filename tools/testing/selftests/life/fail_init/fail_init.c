// SPDX-License-Identifier: GPL-2.0
/*
 * fail_init: fails one allocation in the init function of the next module, for fail_nth.
 *
 * /proc/thread-self/fail-nth would also count the thousands of allocations that the kernel makes
 * before it calls the init function.  Their number changes from load to load, so some allocations
 * of the init function would never fail.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

static unsigned int nth;
module_param(nth, uint, 0600);
MODULE_PARM_DESC(nth,
		 "which allocation shall fail, counted from 1; read afterwards: 0 if it has failed, otherwise how many more allocations would have been needed");

/* The task that executes the init function, or NULL */
static struct task_struct *loader;

static struct tracepoint *start, *finish;

static void init_starts(void *data, initcall_t func)
{
	if (!nth || loader)
		return;
	loader = current;
	current->fail_nth = nth;
}

/*
 * Ignore init functions that other tasks run: an init function may load other modules, and other
 * tasks run the init functions of these modules.
 */
static void init_finishes(void *data, initcall_t func, int ret)
{
	if (loader != current)
		return;
	nth = current->fail_nth;
	current->fail_nth = 0;
	loader = NULL;
}

static void find(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "initcall_start"))
		start = tp;
	else if (!strcmp(tp->name, "initcall_finish"))
		finish = tp;
}

static int __init fail_init_init(void)
{
	int err;

	for_each_kernel_tracepoint(find, NULL);
	if (!start || !finish)
		return -ENOENT;
	err = tracepoint_probe_register(start, init_starts, NULL);
	if (err)
		return err;
	err = tracepoint_probe_register(finish, init_finishes, NULL);
	if (err) {
		tracepoint_probe_unregister(start, init_starts, NULL);
		tracepoint_synchronize_unregister();
	}
	return err;
}
module_init(fail_init_init);

static void __exit fail_init_exit(void)
{
	tracepoint_probe_unregister(finish, init_finishes, NULL);
	tracepoint_probe_unregister(start, init_starts, NULL);
	tracepoint_synchronize_unregister();
}
module_exit(fail_init_exit);

MODULE_DESCRIPTION("Fails an allocation of the next module's init function");
MODULE_LICENSE("GPL");
