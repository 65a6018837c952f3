/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_READ_H
#define BPF_READ_H

#include "bpf/events.h"

/*
 * The doors to what is outside of the walk: target memory, and the time.
 *
 * A walk in the thread itself holds a work space that is its CPU's, so that read_user() waits for
 * nothing: a page that is not present is -EFAULT, and trying again at once is useless. dst is
 * zeroed on failure. Whoever may wait has read_in_user() fetch what was missing and walks again.
 *
 * On the host, READ_USER_FROM_HOST is defined and whoever compiles the walk brings read_memory()
 * and clock_ns(): user/inspect, of processes that live; the tests, of memory that they make.
 */

/* From where the thread is looked at. */
enum access {
	ACCESS_IRQ,    /* an interrupt of it: nothing may be waited for */
	ACCESS_TASK,   /* its own context, before it goes on: between two walks pages may be */
	ACCESS_REMOTE, /* another task's, that may wait: of a thread that does not run */
};

/*
 * Whose memory: of the thread that is met there is nothing to be said. A program that looks at
 * another one defines READ_REMOTE: the verifier has to see the task with each read, so that it goes
 * from function to function, and from where one is called back. A global function takes none.
 */
#ifdef READ_REMOTE
struct door {
	struct task_struct *task;
};
#else
struct door {
};
#endif

#ifdef READ_USER_FROM_HOST
int read_memory(void *dst, __u32 size, __u64 addr);
__u64 clock_ns(void);

static __always_inline int read_user(struct door door, void *dst, __u32 size, __u64 addr)
{
	(void)door;
	return read_memory(dst, size, addr);
}
#else
#include "bpf/fetch.h"

#ifdef READ_REMOTE
/* A page that is not present is waited for. */
static __always_inline int read_user(struct door door, void *dst, __u32 size, __u64 addr)
{
	return bpf_copy_from_user_task(dst, size, (const void *)addr, door.task, 0);
}
#else
static __always_inline int read_user(struct door door, void *dst, __u32 size, __u64 addr)
{
	return bpf_probe_read_user(dst, size, (const void *)addr);
}
#endif

static __always_inline bool read_in_page(__u64 addr)
{
	__u8 byte;

	return is_fetchable(addr) && !bpf_copy_from_user(&byte, 1, (void *)addr);
}

/* The pages of the first and the last byte of a range that spans no more than two. */
static __always_inline bool read_in_user(const struct page_range *r)
{
	return read_in_page(r->addr) && (!r->bytes || read_in_page(r->addr + r->bytes - 1));
}

/* CLOCK_MONOTONIC */
static __always_inline __u64 clock_ns(void)
{
	return bpf_ktime_get_ns();
}
#endif

#endif
