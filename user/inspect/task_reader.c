/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/task_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEBUG_FRAMES_MAX 64 /* of a creation traceback; asyncio itself keeps 10 */
#define INTERPRETERS_MAX 64
#define THREADS_MAX 65536

/* --- frames ----------------------------------------------------------------------------------- */

int task_reader_push(struct task_reader *t, uint64_t frame, uint64_t address, uint32_t instr)
{
	const struct code_object *code;
	int e = code_objects_get(&t->out->codes, &t->awaits.objects, address, &code);

	if (e < 0)
		return e;
	return vec_push(&t->out->frames,
			((struct task_frame){ .name = code->name,
					      .file = code->file,
					      .own_name = code->own_name,
					      .frame = frame,
					      .line = code_object_line(code, instr),
					      .first_line = code->first_line }));
}

/* A call of a coroutine of Cython's. One whose code cannot be read is left out. */
static int push_compiled(struct task_reader *t, const struct coroutine *c)
{
	int e = task_reader_push(t, 0, c->code, c->instr);

	if (!e)
		t->out->frames.items[t->out->frames.len - 1].line = 0;
	return task_reader_stops(e) ? e : 0;
}

static int push_frame(void *arg, const struct coroutine *c)
{
	return c->frame ? task_reader_push(arg, c->frame, c->code, c->instr)
			: push_compiled(arg, c);
}

/* A traceback.FrameSummary. */
static int push_summary(struct object_reader *r, uint64_t summary, void *arg)
{
	struct task_reader *t = arg;
	struct task_frame frame = { .line = 1 };
	uint64_t name, file, line;
	int64_t number;
	int e;

	if ((e = object_attribute(r, summary, "name", &name)) < 0 ||
	    (e = object_attribute(r, summary, "filename", &file)) < 0 ||
	    (e = object_attribute(r, summary, "lineno", &line)) < 0 ||
	    (e = text_cache_get(&t->out->codes.texts, r, name, &frame.name)) < 0 ||
	    (e = text_cache_get(&t->out->codes.texts, r, file, &frame.file)) < 0)
		return e;
	if (!object_long(r, line, &number) && number > 0 && number <= INT32_MAX)
		frame.line = number;
	frame.own_name = frame.name;
	if ((e = vec_push(&t->out->frames, frame)) < 0)
		return e;
	return t->out->frames.len - t->first_frame == DEBUG_FRAMES_MAX;
}

/* What cannot be read of it is left out: it tells of the past. */
static int read_created(struct task_reader *t, uint64_t traceback, struct inspect_task *task)
{
	struct object_reader *r = &t->awaits.objects;
	enum object_kind kind;
	int e;

	task->created = t->first_frame = t->out->frames.len;
	e = object_kind(&t->awaits.kinds, r, traceback, &kind);
	if (!e && kind != KIND_NONE)
		e = object_sequence_each(r, traceback, push_summary, t);
	if (task_reader_stops(e))
		return e;
	if (e < 0)
		t->out->frames.len = task->created;
	task->created_len = t->out->frames.len - task->created;
	return 0;
}

/* --- a task ----------------------------------------------------------------------------------- */

/* A str; from 3.12 on the number of one that was given no name. */
static int read_name(struct task_reader *t, uint64_t object, const char **out)
{
	struct object_reader *r = &t->awaits.objects;
	char text[32];
	int64_t number;
	int e = text_cache_get(&t->out->codes.texts, r, object, out);

	if (!e || task_reader_stops(e))
		return e;
	if ((e = object_long(r, object, &number)) < 0)
		return e;
	snprintf(text, sizeof(text), "Task-%lld", (long long)number);
	return text_cache_keep(&t->out->codes.texts, text, out);
}

/* Its place, of a new one too: its type and thread are found later. */
static int loop_of(struct task_reader *t, uint64_t address, uint32_t *out)
{
	uint32_t known = address_map_get(&t->loop_places, address);
	int e;

	if (known == ADDRESS_NONE) {
		known = t->out->loops.len;
		e = vec_push(&t->out->loops, ((struct inspect_loop){ .id = address, .type = "" }));
		if (e < 0 || (e = address_map_put(&t->loop_places, address, known)) < 0)
			return e;
	}
	*out = known;
	return 0;
}

static const char *coroutine_name(const struct inspect_tasks *t, const struct inspect_task *task)
{
	return task->frames_len ? t->frames.items[task->frames].name : "";
}

int task_reader_add_task(struct task_reader *t, struct inspect_task *task, uint64_t loop,
			 uint64_t awaited)
{
	struct inspect_tasks *out = t->out;
	int e;

	if (out->tasks.len == TASKS_MAX)
		return -E2BIG;
	task->coroutine = coroutine_name(out, task);
	if ((e = loop_of(t, loop, &task->loop)) < 0 ||
	    (e = address_map_put(&t->task_places, task->id, out->tasks.len)) < 0 ||
	    (e = vec_push(&t->awaited, awaited)) < 0)
		return e;
	return vec_push(&out->tasks, *task);
}

int task_reader_add(struct task_reader *t, const struct task_source *source)
{
	struct inspect_task task = { .id = source->id,
				     .frames = t->out->frames.len,
				     .state = source->is_ready ? TASK_READY : TASK_WAITING };
	uint64_t awaited;
	int e;

	if (!source->id || !source->loop)
		return -EBADMSG;
	if ((e = read_name(t, source->name, &task.name)) < 0 ||
	    (e = await_chain(&t->awaits, source->coro, push_frame, t, &awaited)) < 0)
		return e;
	task.frames_len = t->out->frames.len - task.frames;
	if ((e = read_created(t, source->created, &task)) < 0)
		return e;
	return task_reader_add_task(t, &task, source->loop, awaited ? awaited : source->future);
}

int task_reader_visit(struct task_reader *t, uint64_t object, task_read_fn read)
{
	int e;

	if (address_map_get(&t->task_places, object) != ADDRESS_NONE)
		return 0;
	e = read(t, object);
	if (task_reader_stops(e))
		return e;
	t->out->unreadable += e < 0;
	return 0;
}

int task_reader_find(struct task_reader *t, uint64_t object)
{
	return t->found.len == TASKS_MAX ? -E2BIG : vec_push(&t->found, object);
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int task_reader_visit_found(struct task_reader *t, task_read_fn read)
{
	int e = 0;

	if (t->found.len)
		qsort(t->found.items, t->found.len, sizeof(*t->found.items), compare_addresses);
	for (size_t i = 0; i < t->found.len && !e; i++)
		e = task_reader_visit(t, t->found.items[i], read);
	t->found.len = 0;
	return e;
}

int task_reader_edge(struct task_reader *t, uint64_t child, uint64_t parent)
{
	return vec_push(&t->edges, ((struct task_edge){ .child = child, .parent = parent }));
}

void task_reader_set_running(struct task_reader *t, uint64_t task)
{
	uint32_t place = address_map_get(&t->task_places, task);

	if (place != ADDRESS_NONE)
		t->out->tasks.items[place].state = TASK_RUNNING;
}

void task_reader_set_thread(struct task_reader *t, uint64_t loop, uint64_t ident)
{
	uint32_t place = address_map_get(&t->loop_places, loop);

	if (place != ADDRESS_NONE)
		t->out->loops.items[place].ident = ident;
}

/* --- threads ---------------------------------------------------------------------------------- */

int task_reader_each_thread(struct task_reader *t, uint64_t interp, task_thread_fn fn)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t tstate;
	int e = object_get_pointer(r, interp + r->off->interp_threads_head, &tstate);

	for (unsigned int i = 0; i < THREADS_MAX && !e && tstate; i++) {
		if (task_reader_stops(e = fn(t, tstate)))
			return e;
		e = object_get_pointer(r, tstate + r->off->tstate_next, &tstate);
	}
	return e;
}

int task_reader_each_interpreter(struct task_reader *t, task_interp_fn fn)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t interp;
	int e = object_get_pointer(r, t->process->runtime + r->off->runtime_interpreters_head,
				   &interp);

	for (int i = 0; i < INTERPRETERS_MAX && !e && interp; i++) {
		if (task_reader_stops(e = fn(t, interp)))
			return e;
		e = object_get_pointer(r, interp + r->off->interp_next, &interp);
	}
	return task_reader_stops(e) ? e : 0;
}
