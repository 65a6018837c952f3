/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/cdefs.h> /* __always_inline */
#include <time.h>

#include "inspect/walker.h"

#define READ_USER_FROM_HOST
#include "bpf/python_code.h"
#include "bpf/python_frames.h"
#include "bpf/python_gil.h"
#include "bpf/python_state.h"
#include "bpf/python_thread.h"

#define WALK_NS_MAX 1000000000ULL /* nobody is held up, unlike in the kernel */

struct cache_slot code_cache[CODE_SLOTS];
struct cache_slot thread_cache[THREAD_SLOTS];
struct trust trusts[TRUST_SLOTS];
__u64 sent[SENT_SLOTS];
__u64 epoch;

/* Whose memory read_memory() reads: the walk knows but one. */
static const struct walk_process *current;

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

static struct py_thread thread_of(const struct walk_process *p, pid_t tid, uint64_t pointer)
{
	return (struct py_thread){
		.pointer = pointer, .runtime = p->runtime, .process = p->identity, .tid = (__u32)tid
	};
}

void walker_expect(const struct walk_process *p, pid_t tid, uint64_t pointer, uint64_t tstate)
{
	struct py_thread thread = thread_of(p, tid, pointer);

	cache_put(thread_cache, THREAD_SLOTS, py_thread_key(&thread), tstate);
}

/* As py_walk_frames(), but that it keeps where each frame lies, and trusts no code address. */
static void walk_frames(struct walker *w, struct py_loop *l)
{
	struct py_walk *walk = &l->s->walk;

	py_begin_walk(walk);
	walk->is_strict = 1;
	for (__u32 i = 0; i < WALK_STEPS; i++) {
		__u64 frame = walk->frame;
		__u32 depth = walk->depth;

		if (py_step(i, l) != LOOP_NEXT)
			break;
		if (walk->depth != depth + 1)
			continue; /* passed over, or the walk has begun again */
		w->frames[depth].frame = frame;
		w->frames[depth].code = l->s->frame.code;
	}
}

static uint64_t gil_of(const struct py_offsets *off, uint64_t runtime, uint64_t interp)
{
	if (off->gil_last_holder == OFF_NONE)
		return 0;
	if (off->runtime_gil != OFF_NONE)
		return runtime + off->runtime_gil + off->gil_last_holder;
	return gil_at((struct door){}, off, interp);
}

static void take_result(struct walker *w, const struct py_thread *thread, struct walk *out)
{
	const struct py_scratch *s = &w->scratch;

	out->status = s->walk.status;
	out->flags = s->walk.flags;
	out->tstate = cache_get(thread_cache, THREAD_SLOTS, py_thread_key(thread));
	out->depth = s->walk.depth;
	out->frames = w->frames;
	for (uint32_t i = 0; i < out->depth; i++) {
		const struct frame_record *r = &s->records[i];

		w->frames[i].identity = r->flags & FRAME_UNREADABLE ? 0 : r->code;
		w->frames[i].instr = r->instr;
		w->frames[i].flags = r->flags;
	}
}

int walker_walk(struct walker *w, const struct walk_process *p, pid_t tid, uint64_t pointer,
		struct walk *out)
{
	struct py_scratch *s = &w->scratch;
	const struct py_thread thread = thread_of(p, tid, pointer);
	struct py_loop l = { .s = s, .off = p->off, .thread = &thread };
	struct walk walk = { 0 };
	bool has_walked = false;
	int r;

	current = p;
	s->walk =
		(struct py_walk){ .process = p->identity, .deadline_ns = clock_ns() + WALK_NS_MAX };
	r = py_find_tstate(&l, &has_walked);
	if (r)
		return r == PY_NONE ? -ENOENT : -EFAULT;
	walk.interp = tstate_u64(s, p->off->tstate_interp);
	walk.gil = gil_of(p->off, p->runtime, walk.interp);
	py_note_exception(&l);
	if (s->walk.flags & SAMPLE_HANDLES)
		walk.exception = field_u64(s->text, p->off->exc_value, EXC_ITEM_BYTES - 1);
	py_note_collection(&l);
	if (py_first_frame(l.door, s, p->off))
		return -EFAULT;
	s->walk.generation = py_generation(&l);
	walk_frames(w, &l);
	take_result(w, &thread, &walk);
	*out = walk;
	return 0;
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
