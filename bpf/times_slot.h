/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_TIMES_SLOT_H
#define BPF_TIMES_SLOT_H

/*
 * Where the times of a thread are. Two entries are needed at each switch, so most are where they
 * are found without a call: in the slot of times_slots that the address of the task_struct leads
 * to, which is the thread's from its entry on until its task_struct is freed. If that is another's,
 * they are in the task's storage, as the slots are no more than a few thousand: then a look takes
 * 40 ns. So are all without session.has_slots: kernels whose verifier has little room left, as
 * they walk in the switch.
 */

#include "bpf/session.h"

/* The address of a task as a number: the verifier lets pointers be numbers only in a difference. */
static __always_inline __u64 task_number(struct task_struct *task)
{
	__u64 number = (const char *)task - (const char *)&session;

	__asm__("" : "+r"(number));
	return number;
}

/* Where the address leads to, whoever has it. NULL: there are no slots. */
static __always_inline struct times_slot *times_slot_of(__u64 number)
{
	__u32 at = number * 0x9e3779b97f4a7c15ULL >> (64 - TIMES_SLOTS_SHIFT);

	if (!session.has_slots)
		return NULL;
	return bpf_map_lookup_elem(&times_slots, &at);
}

/*
 * bpf_rdonly_cast() of Linux 6.2, as with task_work_schedule() (bpf/schedule.h): in its place the
 * verifier puts a move, so that it costs nothing.
 */
static const void *(*rdonly_cast)(const void *p, __u32 type) = (void *)RDONLY_CAST;

/*
 * Most tasks of a machine have no storage at all, which is told much sooner than by the helper. For
 * each pointer that is read of a task it trusts, the verifier reads all types of the kernel several
 * times: half of what it took for all programs. What is cast is not trusted.
 */
static __always_inline bool has_storage(struct task_struct *task)
{
	const struct task_struct *known = task;

	if (session.task_type)
		known = rdonly_cast(task, session.task_type);
	return known->bpf_storage;
}

static __always_inline struct thread_times *times_get(struct task_struct *task)
{
	__u64 number = task_number(task);
	struct times_slot *slot = times_slot_of(number);

	if (slot && slot->owner == number)
		return &slot->times;
	if (!has_storage(task))
		return NULL;
	return bpf_task_storage_get(&thread_times, task, NULL, 0);
}

/*
 * For a task that has no entry. Returns false where somebody else makes one at this moment; *slot
 * is NULL where the slot is another's, else to be filled in and given by times_slot_give().
 */
static __always_inline bool times_slot_take(__u64 number, struct times_slot **slot)
{
	__u64 owner;

	*slot = times_slot_of(number);
	if (!*slot)
		return true;
	owner = __sync_val_compare_and_swap(&(*slot)->owner, 0, number | TIMES_SLOT_TAKEN);
	if (!owner)
		return true;
	*slot = NULL;
	return (owner & ~(__u64)TIMES_SLOT_TAKEN) != number;
}

static __always_inline void times_slot_give(struct times_slot *slot, __u64 number)
{
	__sync_lock_test_and_set(&slot->owner, number);
}

/* The task is no more, or it is new, and the slot was left behind by one at the same address. */
static __always_inline void times_slot_free(struct task_struct *task)
{
	__u64 number = task_number(task);
	struct times_slot *slot = times_slot_of(number);

	if (slot)
		__sync_val_compare_and_swap(&slot->owner, number, 0);
}

/*
 * An entry that is init at first; NULL: all zero. Returns the one there is, if there is one; NULL:
 * there is no room, or somebody else is making it.
 */
static __always_inline struct thread_times *times_make(struct task_struct *task,
						       struct thread_times *init)
{
	__u64 number = task_number(task);
	struct thread_times *t = times_get(task);
	struct times_slot *slot;

	if (t || !times_slot_take(number, &slot))
		return t;
	if (!slot)
		return bpf_task_storage_get(&thread_times, task, init,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (init)
		__builtin_memcpy(&slot->times, init, sizeof(slot->times));
	else
		__builtin_memset(&slot->times, 0, sizeof(slot->times));
	times_slot_give(slot, number);
	return &slot->times;
}

#endif
