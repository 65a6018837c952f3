/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_OWN_H
#define BPF_OWN_H

#include "bpf/python_look.h"

/* What own.bpf.c and still.bpf.c share, which are one object: a walk is made in a slot. */

extern struct py_offsets layout; /* of the process that is looked at; written by user space */

/* Slot -> a walk, and what it works on. User space maps the first, and sets the size of both. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct own_walk);
} own_walks __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct py_scratch);
} own_scratch __weak SEC(".maps");

/* Before py_look(): of the thread that is asked for. */
static __always_inline void own_begin(struct own_walk *w, struct py_scratch *s, __u64 deadline_ns)
{
	s->thread.pointer = w->asked.pointer;
	s->thread.runtime = w->asked.runtime;
	s->thread.process = w->asked.process;
	s->thread.tid = w->asked.tid;
	__builtin_memset(&s->walk, 0, sizeof(s->walk));
	s->walk.process = w->asked.process;
	s->walk.deadline_ns = deadline_ns;
}

#endif
