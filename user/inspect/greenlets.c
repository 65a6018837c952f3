/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/greenlets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GC_HEAD_BYTES 16      /* PyGC_Head: two links with flags in their low bits */
#define GC_FLAGS 3            /* of both */
#define GREENLET_PIMPL 16     /* PyGreenlet: weakreflist, dict, pimpl, from its head's end */
#define FRAME_OBJECT_FRAME 8  /* PyFrameObject.f_frame, the same; 3.11 on */
#define DEPTH_MAX 4096        /* frames of one; deeper: cut there */
#define LOOP_TYPE "greenlets" /* in the place of a loop's type */

/* greenlet::Greenlet of greenlet 2.0 on, in words: what comes before exc_state is alike in all. */
enum { IMPL_SELF = 1, IMPL_EXC_STATE = 3, IMPL_WORDS = 16 };
/* From the end of exc_state on. */
enum { STATE_STACK_START = 2, STATE_STACK_STOP = 3, STATE_TOP_FRAME = 8 };

struct greenlet {
	uint64_t stack; /* an address in the C stack of its thread; 0: it has not begun, or has
			   ended */
	uint64_t frame; /* the innermost one; 0: none, or it runs */
	bool is_main;   /* each thread that has greenlets has one, which is the thread itself */
};

/* --- one greenlet ----------------------------------------------------------------------------- */

static int get_greenlet(struct task_reader *t, uint64_t object, struct greenlet *out)
{
	struct object_reader *r = &t->awaits.objects;
	/* _PyErr_StackItem */
	const unsigned int state = IMPL_EXC_STATE + (r->off->minor >= 11 ? 2 : 4);
	uint64_t impl, words[IMPL_WORDS];
	int e;

	if ((e = object_get_pointer(r, object + r->head + GREENLET_PIMPL, &impl)) < 0 ||
	    (e = object_get(r, impl, words, sizeof(words))) < 0)
		return e;
	if (words[IMPL_SELF] != object)
		return -EBADMSG; /* of another version */
	*out = (struct greenlet){ .stack = words[state + STATE_STACK_START],
				  .frame = words[state + STATE_TOP_FRAME],
				  .is_main = words[state + STATE_STACK_STOP] == UINT64_MAX };
	if (!out->frame || r->off->frame_kind == FRAME_OBJECT)
		return 0;
	return object_get_pointer(r, out->frame + r->head + FRAME_OBJECT_FRAME, &out->frame);
}

/* Root first, as frames of tasks are. */
static int push_frames(struct task_reader *t, uint64_t frame)
{
	VEC(struct coroutine) calls = VEC_INIT;
	struct coroutine call;
	int e = 0;

	while (!e && frame && calls.len < DEPTH_MAX) {
		e = await_call(&t->awaits, frame, &call, &frame);
		if (!e)
			e = vec_push(&calls, call);
	}
	for (size_t i = calls.len; i > 0 && !e; i--) {
		const struct coroutine *c = &calls.items[i - 1];

		e = task_reader_push(t, c->frame, c->code, c->instr);
	}
	vec_release(&calls);
	return e;
}

/* The type's name, and where it is: greenlets have no other. */
static int read_name(struct task_reader *t, uint64_t object, const char **out)
{
	struct object_reader *r = &t->awaits.objects;
	char name[64], text[96];
	const char *own;
	uint64_t type;
	int e;

	if ((e = object_type(r, object, &type)) < 0 ||
	    (e = object_type_name(r, type, name, sizeof(name))) < 0)
		return e;
	own = strrchr(name, '.');
	snprintf(text, sizeof(text), "%s 0x%llx", own ? own + 1 : name, (unsigned long long)object);
	return text_cache_keep(&t->out->codes.texts, text, out);
}

/* --- whose it is ------------------------------------------------------------------------------ */

static int add_ident(struct task_reader *t, uint64_t tstate)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t ident;
	int e = object_get_pointer(r, tstate + r->off->tstate_thread_id, &ident);

	return e < 0 ? e : vec_push(&t->idents, ident);
}

static int compare_idents(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Lists the threads of an interpreter; the first thread's state is the oldest. */
static int read_idents(struct task_reader *t, uint64_t interp)
{
	int e;

	t->idents.len = 0;
	e = task_reader_each_thread(t, interp, add_ident);
	t->first_ident = t->idents.len ? t->idents.items[t->idents.len - 1] : 0;
	if (t->idents.len)
		qsort(t->idents.items, t->idents.len, sizeof(uint64_t), compare_idents);
	return e;
}

/* pthread_self() is an address on top of the thread's C stack, but for the first thread. */
static uint64_t ident_of(const struct task_reader *t, uint64_t stack)
{
	size_t first = 0, end = t->idents.len;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (t->idents.items[middle] > stack)
			end = middle;
		else
			first = middle + 1;
	}
	return first < t->idents.len ? t->idents.items[first] : t->first_ident;
}

static int read_greenlet(struct task_reader *t, uint64_t object)
{
	struct inspect_task task = { .id = object, .frames = t->out->frames.len };
	struct greenlet g;
	uint64_t ident;
	int e = get_greenlet(t, object, &g);

	if (e < 0)
		return e;
	t->running_greenlets += g.is_main; /* of its thread, some one */
	if (!g.stack || !g.frame) {
		t->out->frameless += g.stack != 0;
		return 0;
	}
	ident = ident_of(t, g.stack);
	if (!ident)
		return -EBADMSG;
	if ((e = read_name(t, object, &task.name)) < 0 || (e = push_frames(t, g.frame)) < 0)
		return e;
	task.frames_len = t->out->frames.len - task.frames;
	if ((e = task_reader_add_task(t, &task, ident, 0)) < 0)
		return e;
	t->out->loops.items[task.loop].type = LOOP_TYPE;
	task_reader_set_thread(t, ident, ident);
	return 0;
}

/* --- the collector's lists ----------------------------------------------------------------------
 */

static int find_greenlet(struct task_reader *t, uint64_t object)
{
	enum object_kind kind;
	int e = object_kind(&t->awaits.kinds, &t->awaits.objects, object, &kind);

	if (e < 0)
		return e;
	return kind == KIND_GREENLET ? task_reader_find(t, object) : 0;
}

/* The next object of a ring. -EBADMSG: that says otherwise. */
static int next_object(struct object_reader *r, uint64_t *node)
{
	uint64_t links[2], next = 0;
	int e = object_get_pointer(r, *node, &next);

	next &= ~(uint64_t)GC_FLAGS;
	if (e < 0 || (e = object_get(r, next, links, sizeof(links))) < 0)
		return e;
	if ((links[1] & ~(uint64_t)GC_FLAGS) != *node)
		return -EBADMSG;
	*node = next;
	return 0;
}

/* A list ends for us where it is changed meanwhile. */
static int read_list(struct task_reader *t, uint64_t head)
{
	uint64_t node = head;
	int e;

	do {
		e = next_object(&t->awaits.objects, &node);
		if (!e && node != head)
			e = find_greenlet(t, node + GC_HEAD_BYTES);
	} while (!e && node != head);
	if (task_reader_stops(e))
		return e;
	t->out->are_greenlets_torn |= e < 0;
	return 0;
}

static int read_lists(struct task_reader *t, uint64_t collecting)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t first = collecting - GC_LISTS_TO_COLLECTING(r->off->minor), node = first;
	int e = next_object(r, &node);

	if (e < 0)
		first -= GC_LISTS_ALIGNED_LESS;
	for (uint64_t i = 0; i < GC_GENERATIONS; i++)
		if ((e = read_list(t, first + i * GC_GENERATION_BYTES)) < 0)
			return e;
	return read_list(t, collecting - GC_FROZEN_TO_COLLECTING(r->off->minor));
}

static int read_interpreter(struct task_reader *t, uint64_t interp)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t type;
	int e;

	if ((e = object_global(r, interp, "greenlet._greenlet", "greenlet", &type)) < 0)
		return e; /* none is in use here */
	if (task_reader_stops(e = read_idents(t, interp)))
		return e;
	if ((e = read_lists(t, r->off->interp_gc_collecting != OFF_NONE
				       ? interp + r->off->interp_gc_collecting
				       : t->process->runtime + r->off->runtime_gc_collecting)) < 0)
		return e;
	return task_reader_visit_found(t, read_greenlet);
}

int greenlets_read(struct task_reader *t)
{
	uint32_t *frameless = &t->out->frameless;
	int e;

	if (t->awaits.layout.is_free_threaded)
		return 0; /* its collector has no lists */
	e = task_reader_each_interpreter(t, read_interpreter);
	*frameless -= *frameless < t->running_greenlets ? *frameless : t->running_greenlets;
	return e;
}
