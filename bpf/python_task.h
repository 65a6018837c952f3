/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PYTHON_TASK_H
#define BPF_PYTHON_TASK_H

/*
 * The task that a thread runs. Of asyncio the thread state says which from 3.14 on; before, a dict
 * of the interpreter has that of each loop. Of trio a variable of its loop does, which is at one
 * place as long as that runs. A task is believed only if the frame of its coroutine is on the stack
 * that is walked: that settles which of several loops is this thread's, and what was torn.
 */

#include "bpf/python.h"
#include "bpf/python_context.h"

#define DICT_ENTRIES_MAX 16
#define DICT_ENTRY_BYTES 24 /* hash, key, value: where keys are not all str */
/* struct _dictkeysobject (Objects/dict-common.h; from 3.11 on Include/internal/pycore_dict.h) */
#define KEYS_SIZE 8 /* up to 3.10: of the table, whose indices are bytes up to 128 */
#define KEYS_ENTRIES_3_8 32
#define KEYS_INDICES_3_8 40
#define KEYS_INDEX_BITS 9 /* from 3.11 on: log2 of the table's bytes */
#define KEYS_KIND 10      /* 0: any keys */
#define KEYS_ENTRIES_3_11 24
#define KEYS_INDICES_3_11 32
#define KEYS_HEAD_BYTES 40
#define KEYS_TABLE_MAX 128 /* of a larger dict nothing is read */

#define TAG_BITS 3ULL /* of a variable, from 3.14 on: no object lies there */

#define NAME_TASK 0x2d6b736154ULL /* "Task-" */
#define NAME_TASK_BYTES 5

/* A task that some loop runs: notes its coroutine's frame, which the walk may meet. */
static __always_inline void py_add_task(struct py_loop *l, __u64 task)
{
	struct py_async *a = &l->s->async;
	struct door door = l->door;
	__u64 frame;
	__u32 at = a->count;

	if (!task || at >= ASYNC_TASKS_MAX)
		return;
	frame = read_pointer(door, l->s, task + a->row.task_coro);
	if (frame && a->row.is_frame_inside)
		frame += a->row.coro_frame;
	else if (frame)
		frame = read_pointer(door, l->s, frame + a->row.coro_frame);
	if (!frame)
		return;
	a->tasks[at & (ASYNC_TASKS_MAX - 1)] = task;
	a->frames[at & (ASYNC_TASKS_MAX - 1)] = frame;
	a->count = at + 1;
}

/* Where the entries of a dict's keys begin, whose head is in s->message; 0: not to be read. */
static __always_inline __u64 keys_entries(struct py_loop *l, __u64 keys, __u64 *count)
{
	const __u8 *head = l->s->message;

	if (l->off->minor >= 11) {
		*count = *(const __u64 *)(head + KEYS_ENTRIES_3_11);
		if (head[KEYS_KIND] || head[KEYS_INDEX_BITS] > 7)
			return 0;
		return keys + KEYS_INDICES_3_11 + (1ULL << (head[KEYS_INDEX_BITS] & 7));
	}
	*count = *(const __u64 *)(head + KEYS_ENTRIES_3_8);
	if (*(const __u64 *)(head + KEYS_SIZE) > KEYS_TABLE_MAX)
		return 0;
	return keys + KEYS_INDICES_3_8 + *(const __u64 *)(head + KEYS_SIZE);
}

static int py_task_entry(__u32 i, struct py_loop *l)
{
	struct py_async *a = &l->s->async;

	if (i >= a->entries || i >= DICT_ENTRIES_MAX || a->count >= ASYNC_TASKS_MAX)
		return LOOP_STOP;
	py_add_task(l, *(const __u64 *)(l->s->message + i * DICT_ENTRY_BYTES + 16));
	return LOOP_NEXT;
}

LOOP_STEP(py_task_entry)

/* _current_tasks: {loop: task}. Its keys are another object now and then: nothing is kept of it. */
static __always_inline void py_read_current_tasks(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	__u64 keys, entries, count;

	if (!s->async.row.current_tasks)
		return;
	keys = read_pointer(door, s, s->async.row.current_tasks + l->off->str_length + DICT_KEYS);
	if (!keys || py_read(door, s, s->message, KEYS_HEAD_BYTES, keys))
		return;
	entries = keys_entries(l, keys, &count);
	count = count > DICT_ENTRIES_MAX ? DICT_ENTRIES_MAX : count;
	s->async.entries = count;
	count = at_most(count * DICT_ENTRY_BYTES, DICT_ENTRIES_MAX * DICT_ENTRY_BYTES);
	if (!entries || !count || py_read(door, s, s->message, count, entries))
		return;
	LOOP(DICT_ENTRIES_MAX, py_task_entry, l);
}

/* Before the walk: s->async.row is filled in, s->search.runs is the thread state. */
static __always_inline void py_find_tasks(struct py_loop *l)
{
	struct door door = l->door;
	struct py_async *a = &l->s->async;

	if (a->row.is_variable)
		py_add_task(l, read_pointer(door, l->s, a->row.current_tasks) & ~TAG_BITS);
	else if (a->row.tstate_task)
		py_add_task(l, read_pointer(door, l->s, l->s->search.runs + a->row.tstate_task));
	else
		py_read_current_tasks(l);
}

/*
 * The name of the task that was met, as one more value in s->labels. One that asyncio has made up,
 * an int that is "Task-N" when somebody asks, or that already, is none: it tells nothing.
 */
static __always_inline void py_read_task_name(struct py_loop *l)
{
	struct py_scratch *s = l->s;
	struct door door = l->door;
	struct label_value *v = &s->labels.values[s->labels.count & (CONTEXT_LABELS_MAX - 1)];
	__u64 name;

	if (!s->async.task || s->labels.count >= CONTEXT_LABELS_MAX)
		return;
	name = read_pointer(door, s, s->async.task + s->async.row.task_name);
	__builtin_memset(v, 0, sizeof(*v));
	v->number = LABEL_TASK;
	if (!name || !read_value(l, name, v) || v->kind != LABEL_TEXT)
		return;
	if (v->char_bytes == 1 &&
	    (v->value[0] & ((1ULL << 8 * NAME_TASK_BYTES) - 1)) == NAME_TASK &&
	    (__u32)(__u8)(v->value[0] >> 8 * NAME_TASK_BYTES) - '0' < 10)
		return;
	s->labels.count++;
	s->walk.flags |= SAMPLE_TASK_NAMED;
}

#endif
