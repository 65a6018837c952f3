/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/cdefs.h> /* __always_inline */
#include <time.h>

#include "inspect/walker.h"

#define READ_USER_FROM_HOST
#include "bpf/python_code.h"
#include "bpf/python_look.h"

#define WALK_NS_MAX 1000000000ULL /* nobody is held up, unlike in the kernel */

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct kept_search searches[SEARCH_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;

/* Whose memory read_memory() reads, and the thread there: the walk knows but one. */
static const struct walk_process *current;
static const struct walk_thread *current_thread;

struct walker {
	struct py_scratch scratch;
	struct walk_frame frames[FRAMES_MAX];
};

int read_memory(void *dst, __u32 size, __u64 addr)
{
	if (!current->read(current->arg, addr, dst, size))
		return 0;
	__builtin_memset(dst, 0, size);
	return PY_FAULT;
}

__u64 clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000ULL + (__u64)t.tv_nsec;
}

void met_read(struct door door, struct py_met *met)
{
	(void)door;
	met->sp = current_thread->sp;
	met->stack_end = current_thread->stack_end;
	met->tid = (__u32)current_thread->nspid;
	met->is_first = current_thread->is_first;
	met->is_forked = current->is_forked;
}

int walker_new(struct walker **out)
{
	struct walker *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*out = w;
	return 0;
}

void walker_free(struct walker *w)
{
	free(w);
}

void walker_expect(const struct walk_process *p, pid_t tid, uint64_t tstate)
{
	thread_cache_put(p->identity, (__u32)tid, tstate | TSTATE_IS_SURE);
}

/* What a walk of this process begins with. */
static void begin(struct walker *w, const struct walk_process *p)
{
	current = p;
	w->scratch.walk =
		(struct py_walk){ .process = p->identity, .deadline_ns = clock_ns() + WALK_NS_MAX };
}

int walker_walk(struct walker *w, const struct walk_process *p, const struct walk_thread *t,
		struct walk *out)
{
	const struct py_thread thread = { .pointer = t->pointer,
					  .runtime = p->runtime,
					  .process = p->identity,
					  .tid = (__u32)t->tid };
	struct py_look look = { .loop = { .s = &w->scratch, .off = p->off, .thread = &thread },
				.frames = w->frames };
	struct walk_head head = { 0 };
	int r;

	begin(w, p);
	current_thread = t;
	r = py_look(&look, &head);
	if (r)
		return r == PY_NONE ? -ENOENT : -EFAULT;
	*out = walk_of(&head, w->frames);
	return 0;
}

uint64_t walker_identify(struct walker *w, const struct walk_process *p, uint64_t code)
{
	begin(w, p);
	w->scratch.walk.is_strict = 1;
	return py_code_identity((struct door){}, &w->scratch, p->off, code);
}

bool walk_gil_has_word(uint64_t gil, uint64_t addr)
{
	return gil_has_word(gil, addr);
}

int walker_describe(struct walker *w, const struct walk_process *p, uint64_t identity,
		    uint64_t code, const struct code_event **out)
{
	const struct py_unsent u = { .id = identity, .addr = code };

	current = p;
	w->scratch.walk.faults = 0;
	if (py_describe((struct door){}, &w->scratch, p->off, &u) < 0)
		return -EFAULT;
	*out = (const struct code_event *)w->scratch.message;
	return 0;
}
