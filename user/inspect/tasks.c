/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "inspect/asyncio.h"
#include "inspect/greenlets.h"
#include "inspect/pages.h"
#include "inspect/task_reader.h"
#include "inspect/trio.h"
#include "inspect/waits_for.h"

void inspect_tasks_release(struct inspect_tasks *t)
{
	vec_release(&t->tasks);
	vec_release(&t->loops);
	vec_release(&t->frames);
	vec_release(&t->links);
	vec_release(&t->cycles);
	code_objects_release(&t->codes);
	*t = (struct inspect_tasks){ 0 };
}

/* --- what was read of single tasks, put together ------------------------------------------------
 */

static int compare_edges(const void *a, const void *b)
{
	const struct task_edge *x = a, *y = b;

	if (x->child != y->child)
		return x->child < y->child ? -1 : 1;
	return x->parent < y->parent ? -1 : x->parent > y->parent;
}

/* Edges between tasks that are there, each once, as places instead of addresses, in order. */
static void sort_edges(struct task_reader *t)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < t->edges.len; i++) {
		struct task_edge edge = t->edges.items[i];

		edge.child = address_map_get(&t->task_places, edge.child);
		edge.parent = address_map_get(&t->task_places, edge.parent);
		if (edge.child != ADDRESS_NONE && edge.parent != ADDRESS_NONE)
			t->edges.items[n++] = edge;
	}
	if (n)
		qsort(t->edges.items, n, sizeof(*t->edges.items), compare_edges);
	for (size_t i = 0; i < n; i++)
		if (!kept || compare_edges(&t->edges.items[kept - 1], &t->edges.items[i]))
			t->edges.items[kept++] = t->edges.items[i];
	t->edges.len = kept;
}

static int link_tasks(struct task_reader *t)
{
	struct inspect_tasks *out = t->out;
	int e;

	sort_edges(t);
	for (size_t i = 0; i < t->edges.len; i++) {
		struct inspect_task *child = &out->tasks.items[t->edges.items[i].child];

		if (!child->awaited_by_len++)
			child->awaited_by = out->links.len;
		if ((e = vec_push(&out->links, (uint32_t)t->edges.items[i].parent)) < 0)
			return e;
	}
	return 0;
}

static int put_wait(struct task_reader *t, const struct inspect_task *task, uint64_t awaited,
		    struct strbuf *text)
{
	const struct task_frame *frames =
		task->frames_len ? &t->out->frames.items[task->frames] : NULL;
	uint32_t other = address_map_get(&t->task_places, awaited);

	if (task->state == TASK_READY)
		return strbuf_puts(text, "its turn");
	if (other != ADDRESS_NONE)
		return strbuf_appendf(text, "task %s", t->out->tasks.items[other].name);
	return waits_for_put(&t->awaits, awaited, frames, task->frames_len, text);
}

static int describe_waits(struct task_reader *t)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	int e;

	for (size_t i = 0; i < t->out->tasks.len; i++) {
		struct inspect_task *task = &t->out->tasks.items[i];

		if (task->state == TASK_RUNNING)
			continue;
		strbuf_truncate(&text, 0);
		if ((e = put_wait(t, task, t->awaited.items[i], &text)) < 0 ||
		    (text.len && (e = text_cache_keep(&t->out->codes.texts, strbuf_str(&text),
						      &task->waits_for)) < 0))
			return e;
	}
	return 0;
}

/* --- what runs -------------------------------------------------------------------------------- */

/* Coroutines of Cython's, outermost in a task, are on no stack. */
static uint32_t compiled_frames(const struct inspect_tasks *t, const struct inspect_task *task)
{
	uint32_t n = 0;

	while (n < task->frames_len && !t->frames.items[task->frames + n].frame)
		n++;
	return n;
}

/*
 * From the frame of the outermost coroutine to the task; of a task on a stack that frame is there.
 * A task that has none, and runs, is known by its loop.
 */
static int find_roots(struct task_reader *t, struct address_map *roots)
{
	const struct inspect_tasks *out = t->out;
	int e = 0;

	for (uint32_t i = 0; i < out->tasks.len && !e; i++) {
		const struct inspect_task *task = &out->tasks.items[i];
		uint32_t outermost = compiled_frames(out, task);

		if (outermost < task->frames_len)
			e = address_map_put(roots,
					    out->frames.items[task->frames + outermost].frame, i);
		else if (task->state == TASK_RUNNING)
			e = address_map_put(roots, out->loops.items[task->loop].id, i);
	}
	return e;
}

static int push_call(struct task_reader *t, const struct walk_frame *f)
{
	int e = task_reader_push(t, f->frame, f->code, f->instr);

	if (!e && f->flags & FRAME_COMPILED)
		t->out->frames.items[t->out->frames.len - 1].line = (int)f->instr;
	return e;
}

/* The part of a stack that a task runs, leaf first, becomes its frames. */
static int take_frames(struct task_reader *t, struct inspect_task *task,
		       const struct walk_frame *stack, uint32_t depth)
{
	uint32_t first = task->frames, compiled = compiled_frames(t->out, task);
	int e = 0;

	task->state = TASK_RUNNING;
	task->frames = t->out->frames.len;
	for (uint32_t i = 0; i < compiled && !e; i++) {
		struct task_frame frame = t->out->frames.items[first + i];

		e = vec_push(&t->out->frames, frame);
	}
	for (uint32_t k = depth; k > 0 && !task_reader_stops(e); k--)
		e = push_call(t, &stack[k - 1]);
	task->frames_len = t->out->frames.len - task->frames;
	return task_reader_stops(e) ? e : 0;
}

static bool is_step(const struct code_object *code)
{
	return !strcmp(code->own_name, "_run") &&
	       code_file_ends_in(code->file, "/asyncio/events.py");
}

/* How many frames are above that of the loop which runs a task's step. -ENOENT: it is not there. */
static int depth_of_step(struct task_reader *t, const struct walk_frame *stack, uint32_t depth)
{
	const struct code_object *code;

	for (uint32_t i = 0; i < depth; i++) {
		int e = code_objects_get(&t->out->codes, &t->awaits.objects, stack[i].code, &code);

		if (task_reader_stops(e))
			return e;
		if (!e && is_step(code))
			return (int)i;
	}
	return -ENOENT;
}

/* A task that runs and has no frame of its own on the stack: all above its step is what it calls.
 */
static int take_compiled(struct task_reader *t, uint32_t place, const struct walk_frame *stack,
			 uint32_t depth)
{
	int n = depth_of_step(t, stack, depth);

	if (n < 0)
		return task_reader_stops(n) ? n : 0;
	return take_frames(t, &t->out->tasks.items[place], stack, (uint32_t)n);
}

/* The tasks on a stack: the frames of each are those up to the one that runs above it. */
static int take_stack(struct task_reader *t, const struct address_map *roots, uint64_t loop,
		      const struct walk_frame *stack, uint32_t depth)
{
	uint32_t leaf = 0, place;
	int e = 0;

	for (uint32_t i = 0; i < depth && !e; i++) {
		place = address_map_get(roots, stack[i].frame);
		if (place == ADDRESS_NONE)
			continue;
		e = take_frames(t, &t->out->tasks.items[place], stack + leaf, i + 1 - leaf);
		leaf = i + 1;
	}
	if (e || leaf || (place = address_map_get(roots, loop)) == ADDRESS_NONE)
		return e;
	return take_compiled(t, place, stack, depth);
}

/* A thread that does not stand still has no stack; then a task that runs has what it showed. */
static int find_running(struct task_reader *t)
{
	struct address_map roots = { 0 };
	const struct walk_frame *stack;
	uint32_t depth;
	int e = t->process->walk ? find_roots(t, &roots) : 0;

	for (size_t i = 0; i < t->out->loops.len && t->process->walk && !e; i++) {
		const struct inspect_loop *loop = &t->out->loops.items[i];

		if (loop->ident && !t->process->walk(t->process->arg, loop->ident, &stack, &depth))
			e = take_stack(t, &roots, loop->id, stack, depth);
	}
	address_map_release(&roots);
	return e;
}

/* --- cycles ----------------------------------------------------------------------------------- */

/* A path of tasks, each waited for by the one in front of it: with how far each was looked at. */
struct path {
	VEC(uint32_t) tasks;
	uint32_t *next; /* by task: how many of its awaited_by were looked at */
	uint8_t *seen;  /* by task: 0: not met, 1: on the path, 2: done with */
};

/* From a task on the path to its end: the next one waits for each. The first is the last's waiter.
 */
static int add_cycle(struct inspect_tasks *t, const struct path *path, uint32_t from)
{
	struct task_cycle cycle = { .first = t->links.len };
	size_t i = path->tasks.len;
	int e;

	do {
		if ((e = vec_push(&t->links, path->tasks.items[--i])) < 0)
			return e;
		cycle.len++;
	} while (path->tasks.items[i] != from);
	return vec_push(&t->cycles, cycle);
}

/* One step of the search: deeper, or back. */
static int path_step(struct inspect_tasks *t, struct path *path)
{
	uint32_t at = path->tasks.items[path->tasks.len - 1], parent;
	const struct inspect_task *task = &t->tasks.items[at];

	if (path->next[at] == task->awaited_by_len) {
		path->seen[at] = 2;
		path->tasks.len--;
		return 0;
	}
	parent = t->links.items[task->awaited_by + path->next[at]++];
	if (path->seen[parent] == 1)
		return add_cycle(t, path, parent);
	if (path->seen[parent])
		return 0;
	path->seen[parent] = 1;
	return vec_push(&path->tasks, parent);
}

/* Each edge is looked at once: not all cycles that there are, but one through each that is in one.
 */
static int find_cycles(struct inspect_tasks *t)
{
	_cleanup_(freep) uint32_t *next = calloc(t->tasks.len + 1, sizeof(*next));
	_cleanup_(freep) uint8_t *seen = calloc(t->tasks.len + 1, sizeof(*seen));
	struct path path = { .next = next, .seen = seen };
	int e = next && seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < t->tasks.len && !e; i++) {
		if (seen[i])
			continue;
		seen[i] = 1;
		e = vec_push(&path.tasks, i);
		while (!e && path.tasks.len)
			e = path_step(t, &path);
	}
	vec_release(&path.tasks);
	return e;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int read_loop_types(struct task_reader *t)
{
	struct object_reader *r = &t->awaits.objects;
	enum object_kind kind;
	uint64_t type;
	char name[64];
	int e;

	for (size_t i = 0; i < t->out->loops.len; i++) {
		struct inspect_loop *loop = &t->out->loops.items[i];

		if (*loop->type || object_type(r, loop->id, &type) < 0 ||
		    object_type_name(r, type, name, sizeof(name)) < 0 ||
		    object_kind(&t->awaits.kinds, r, loop->id, &kind) < 0)
			continue;
		if (kind == KIND_TRIO_RUNNER)
			snprintf(name, sizeof(name), "trio.run");
		if ((e = text_cache_keep(&t->out->codes.texts, name, &loop->type)) < 0)
			return e;
	}
	return 0;
}

/* The links first: what takes reads may end before it is done. */
static int finish(struct task_reader *t)
{
	int e;

	if ((e = link_tasks(t)) < 0 || (e = find_cycles(t->out)) < 0 ||
	    (e = read_loop_types(t)) < 0 || (e = find_running(t)) < 0)
		return e;
	return t->process->no_words ? 0 : describe_waits(t);
}

static void task_reader_release(struct task_reader *t)
{
	object_kinds_release(&t->awaits.kinds);
	address_map_release(&t->task_places);
	address_map_release(&t->loop_places);
	vec_release(&t->found);
	vec_release(&t->edges);
	vec_release(&t->awaited);
	vec_release(&t->idents);
}

static int task_reader_begin(struct task_reader *t, struct pages *pages)
{
	const struct tasks_process *p = t->process;
	int e;

	t->awaits.codes = &t->out->codes;
	if ((e = task_layout_find(p->off, &t->awaits.layout)) < 0)
		return e;
	if (p->asyncio_debug)
		task_layout_apply_debug(&t->awaits.layout, p->asyncio_debug);
	t->awaits.kinds.task_bytes = t->awaits.layout.task_bytes;
	pages_reuse(pages, p->read, p->arg);
	if (p->is_uncached)
		return object_reader_init(&t->awaits.objects, p->off, p->reads_max, p->read,
					  p->arg);
	return object_reader_init(&t->awaits.objects, p->off, p->reads_max, pages_read, pages);
}

/* Has it imported what has tasks? */
static int probe_interpreter(struct task_reader *t, uint64_t interp)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t found;
	int e = object_global(r, interp, "asyncio.tasks", "_current_tasks", &found);

	t->out->has_asyncio |= !e;
	if (task_reader_stops(e))
		return e;
	e = object_global(r, interp, "trio._core._run", "unrolled_run", &found);
	t->out->has_trio |= !e;
	return e;
}

int tasks_probe(const struct tasks_process *p)
{
	struct inspect_tasks out = { 0 };
	struct task_reader t = { .out = &out, .process = p };
	struct pages own = { 0 };
	int e = task_reader_begin(&t, p->pages ? p->pages : &own);

	if (!e)
		e = task_reader_each_interpreter(&t, probe_interpreter);
	task_reader_release(&t);
	pages_release(&own);
	return e < 0 ? e : out.has_asyncio || out.has_trio;
}

int tasks_collect(const struct tasks_process *p, struct inspect_tasks *out)
{
	struct task_reader t = { .out = out, .process = p };
	struct pages own = { 0 };
	int e = task_reader_begin(&t, p->pages ? p->pages : &own);

	if (!e)
		e = p->only ? asyncio_read_only(&t) : asyncio_read(&t);
	if (!e && !p->only)
		e = trio_read(&t);
	if (!e && p->has_greenlets)
		e = greenlets_read(&t);
	if (e == -E2BIG) {
		out->is_cut = true;
		t.awaits.objects.reads_left = p->reads_max;
		e = 0;
	}
	if (!e)
		e = finish(&t);
	if (e == -E2BIG) {
		out->is_cut = true;
		e = 0;
	}
	task_reader_release(&t);
	pages_release(&own);
	return e;
}
