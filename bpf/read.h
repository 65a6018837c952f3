/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_READ_H
#define BPF_READ_H

/*
 * The only door to target memory. may_fault is a compile-time constant: false in interrupts, where
 * a page that is not present is -EFAULT and trying again is useless; true in task work, where the
 * page is read in. dst is zeroed on failure.
 *
 * The host tests define READ_USER_FROM_TEST and bring their own read_user().
 */
#ifdef READ_USER_FROM_TEST
int read_user(void *dst, __u32 size, __u64 addr, bool may_fault);
#else
static __always_inline int read_user(void *dst, __u32 size, __u64 addr, bool may_fault)
{
	if (may_fault)
		return bpf_copy_from_user(dst, size, (const void *)addr);
	return bpf_probe_read_user(dst, size, (const void *)addr);
}
#endif

#endif
