/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that nhca builds for (6.1, 6.12, 7.x).
 * Written for the newest; on it this file defines nothing.
 */
#ifndef NHCA_COMPAT_H
#define NHCA_COMPAT_H

#include <linux/compiler.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

/* of what is on the stack: each byte is written before it is read, so nobody need clear it */
#ifndef __uninitialized
#define __uninitialized
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#include <linux/srcu.h>
#include <linux/timer.h>
#define srcu_down_read(ssp)	__srcu_read_lock(ssp)
#define srcu_up_read(ssp, idx)	__srcu_read_unlock(ssp, idx)
#define timer_delete_sync(t)	del_timer_sync(t)
#define timer_delete(t)		del_timer(t)
#define timer_shutdown_sync(t)	del_timer_sync(t)
#define dma_buf_vmap_unlocked(buf, map)		dma_buf_vmap(buf, map)
#define dma_buf_vunmap_unlocked(buf, map)	dma_buf_vunmap(buf, map)
#define IB_ACCESS_FLUSH_GLOBAL		BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT	BIT(9)
/* such a core registers no memory for FLUSH, and has no bits to say what a device does */
#define IB_DEVICE_FLUSH_GLOBAL		0
#define IB_DEVICE_ATOMIC_WRITE		0
#define IB_WR_ATOMIC_WRITE		15
#define IB_WC_FLUSH			8
#define IB_WC_ATOMIC_WRITE		9
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define NHCA_OLD_GSO	/* skb_gso_segment() is in linux/netdevice.h */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
#include <linux/timer.h>
#define timer_container_of(var, callback_timer, timer_fieldname) \
	from_timer(var, callback_timer, timer_fieldname)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va(device, addr, size, access) \
	ib_umem_get(device, addr, size, access)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0) && !defined(ib_alloc_device_with_net)
/* every new device began in the initial namespace */
#define ib_alloc_device_with_net(drv_struct, member, net) \
	ib_alloc_device(drv_struct, member)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define ib_mark_name_assigned_by_user(ibdev)	do { } while (0)
#endif

/* NHCA_OLD_*: entries of ib_device_ops whose signature or name was another */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define NHCA_OLD_RES_SRQ	/* `rdma resource' knows no details of SRQs */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define NHCA_OLD_BH		/* no workqueue of bottom halves; see bh.h */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define NHCA_OLD_UBUF	/* ubuf_info has a callback, not ops */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define NHCA_OLD_CREATE_CQ	/* takes ib_udata */
/* there BHs of a CPU exclude each other with PREEMPT_RT as well */
#define local_lock_nested_bh(lock)	do { } while (0)
#define local_unlock_nested_bh(lock)	do { } while (0)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define NHCA_OLD_REG_DMABUF	/* takes ib_udata */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#include <linux/hrtimer.h>
#define NHCA_OLD_IMPORT_NS	/* not a string */
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define NHCA_OLD_PORT_EVENT	/* no report_port_event */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define NHCA_OLD_COUNTER	/* verbs of QPs' counters do not take the port */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define NHCA_OLD_REG_MR		/* reg_user_mr without ib_dmah */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define NHCA_OLD_RESIZE_CQ	/* resize_cq, not resize_user_cq */
#endif

#endif /* NHCA_COMPAT_H */
