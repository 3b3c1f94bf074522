/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernel versions that nhca builds for (6.1, 6.12, 7.x).  The driver is
 * written for the newest of these versions.  With the newest version this file defines nothing.
 */
#ifndef NHCA_COMPAT_H
#define NHCA_COMPAT_H

#include <linux/compiler.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

#include "wire/compat.h"

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
/* An RDMA core before 6.2 has no capability bits for FLUSH and ATOMIC WRITE. */
#define IB_DEVICE_FLUSH_GLOBAL		0
#define IB_DEVICE_FLUSH_PERSISTENT	0
#define IB_DEVICE_ATOMIC_WRITE		0
#define IB_WR_ATOMIC_WRITE		15
#define IB_WC_FLUSH			8
#define IB_WC_ATOMIC_WRITE		9
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#include <linux/mm.h>
/* The caller holds mmap_lock for writing. */
static inline void vm_flags_mod(struct vm_area_struct *vma, vm_flags_t set, vm_flags_t clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define NHCA_OLD_GSO	/* linux/netdevice.h declares skb_gso_segment() */
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
/* In these kernels a new device always belongs to the initial network namespace. */
#define ib_alloc_device_with_net(drv_struct, member, net) \
	ib_alloc_device(drv_struct, member)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define ib_mark_name_assigned_by_user(ibdev)	do { } while (0)
#endif

/*
 * NHCA_OLD_*: in this older kernel an interface has another name, signature or caller, or does not
 * exist.  Most of these interfaces are members of struct ib_device_ops.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define NHCA_OLD_RES_SRQ	/* no fill_res_srq_entry, no fill_res_srq_entry_raw */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#include <linux/fs.h>
/* In these kernels the caller must prevent a freeze of the file system during the write. */
static inline ssize_t nhca_vfs_iocb_iter_write(struct file *file, struct kiocb *iocb,
					       struct iov_iter *iter)
{
	ssize_t ret;

	kiocb_start_write(iocb);
	ret = vfs_iocb_iter_write(file, iocb, iter);
	if (ret != -EIOCBQUEUED)
		kiocb_end_write(iocb);
	return ret;
}

#define vfs_iocb_iter_write(file, iocb, iter)	nhca_vfs_iocb_iter_write(file, iocb, iter)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define NHCA_OLD_BH		/* no BH workqueue; see bh.h */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define NHCA_OLD_UBUF	/* struct ubuf_info has a callback instead of ops */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define NHCA_OLD_CREATE_CQ	/* create_cq takes struct ib_udata */
/* In these kernels the bottom halves of a CPU exclude each other, also with PREEMPT_RT. */
#define local_lock_nested_bh(lock)	do { } while (0)
#define local_unlock_nested_bh(lock)	do { } while (0)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define NHCA_OLD_GET_NETDEV	/* net/smc calls get_netdev instead of ib_device_get_netdev() */
#define NHCA_OLD_REG_DMABUF	/* reg_user_mr_dmabuf takes struct ib_udata */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#include <linux/hrtimer.h>
#define NHCA_OLD_IMPORT_NS	/* MODULE_IMPORT_NS takes a bare name, not a string */
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
#define NHCA_OLD_COUNTER	/* counter_(un)bind_qp take no port; no counter_init */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define NHCA_OLD_REG_MR		/* reg_user_mr and its dmabuf variant take no ib_dmah */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define NHCA_OLD_PORT_SPEED	/* no query_port_speed */
#define NHCA_OLD_RESIZE_CQ	/* resize_cq instead of resize_user_cq */
#endif

#endif /* NHCA_COMPAT_H */
