/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/trio.h"

#include <errno.h>
#include <string.h>

#define RUN_VARIABLES_MAX 32  /* of run(), of which one is the runner, and one its generator */
#define LOOP_VARIABLES_MAX 64 /* of unrolled_run(), of which one is the task that runs */

/* --- tasks ------------------------------------------------------------------------------------ */

/* The value of an attribute, 0 if it is not there, or None. */
static int get_attribute(struct task_reader *t, uint64_t object, const char *name, uint64_t *out)
{
	struct object_reader *r = &t->awaits.objects;
	enum object_kind kind;
	uint64_t value;
	int e = object_attribute(r, object, name, &value);

	if (e == -ENOENT ||
	    (!e && !(e = object_kind(&t->awaits.kinds, r, value, &kind)) && kind == KIND_NONE))
		value = 0;
	else if (e < 0)
		return e;
	*out = value;
	return 0;
}

/* The task whose nursery it is in waits for it, sooner or later. */
static int add_parent(struct task_reader *t, uint64_t task)
{
	uint64_t nursery, parent = 0;
	int e = get_attribute(t, task, "_parent_nursery", &nursery);

	if (!e && nursery)
		e = get_attribute(t, nursery, "_parent_task", &parent);
	return e < 0 || !parent ? e : task_reader_edge(t, task, parent);
}

static int read_task(struct task_reader *t, uint64_t object)
{
	struct task_source source = { .id = object, .loop = t->runner };
	enum object_kind kind;
	uint64_t next;
	int e;

	if ((e = object_kind(&t->awaits.kinds, &t->awaits.objects, object, &kind)) < 0)
		return e;
	if (kind != KIND_TRIO_TASK)
		return -EBADMSG;
	if ((e = get_attribute(t, object, "coro", &source.coro)) < 0 ||
	    (e = get_attribute(t, object, "name", &source.name)) < 0 ||
	    (e = get_attribute(t, object, "_next_send_fn", &next)) < 0)
		return e;
	source.is_ready = next != 0;
	e = task_reader_add(t, &source);
	return e < 0 ? e : add_parent(t, object);
}

static int add_task(struct object_reader *r, uint64_t object, void *arg)
{
	(void)r;
	return task_reader_find(arg, object);
}

/* --- loops ------------------------------------------------------------------------------------ */

/* trio.run() is this frame. */
static int is_run(struct task_reader *t, const struct walk_frame *frame)
{
	static const char file[] = "/trio/_core/_run.py";
	const struct code_object *code;
	size_t len;

	if (code_objects_get(&t->out->codes, &t->awaits.objects, frame->code, &code) < 0 ||
	    strcmp(code->own_name, "run") != 0)
		return 0;
	len = strlen(code->file);
	return len >= sizeof(file) - 1 && !strcmp(code->file + len - (sizeof(file) - 1), file);
}

/* Its variable of this kind. -ENOENT: none. */
static int find_variable(struct task_reader *t, uint64_t frame, enum object_kind wanted,
			 uint64_t *out)
{
	enum object_kind kind;
	uint64_t value;

	for (unsigned int i = 0; i < RUN_VARIABLES_MAX; i++) {
		if (await_argument(&t->awaits, frame, i, &value) < 0)
			break;
		if (value && !object_kind(&t->awaits.kinds, &t->awaits.objects, value, &kind) &&
		    kind == wanted) {
			*out = value;
			return 0;
		}
	}
	return t->awaits.objects.reads_left ? -ENOENT : -E2BIG;
}

struct name_search {
	const char *name;
	unsigned int index;
};

static int find_name(struct object_reader *r, uint64_t name, void *arg)
{
	struct name_search *search = arg;
	int e = object_str_is(r, name, search->name);

	if (e)
		return e;
	return ++search->index == LOOP_VARIABLES_MAX ? -E2BIG : 0;
}

/*
 * run() has a generator, unrolled_run(), whose frame stays where it is for as long as the loop
 * runs: its variable `task` is the task that runs, or the one that did.
 */
static int find_place(struct task_reader *t, uint64_t frame, struct trio_place *out)
{
	struct object_reader *r = &t->awaits.objects;
	struct name_search search = { .name = "task" };
	const struct code_object *code;
	struct coroutine loop;
	uint64_t generator, names;
	int e;

	if ((e = find_variable(t, frame, KIND_GENERATOR, &generator)) < 0 ||
	    (e = coroutine_get(&t->awaits, generator, &loop)) < 0 ||
	    (e = code_objects_get(&t->out->codes, r, loop.code, &code)) < 0)
		return e;
	if (!loop.frame || strcmp(code->own_name, "unrolled_run") != 0)
		return -ENOENT;
	if ((e = object_get_pointer(r, loop.code + r->head + r->layout->code_names, &names)) < 0 ||
	    (e = object_sequence_each(r, names, find_name, &search)) <= 0)
		return e < 0 ? e : -ENOENT;
	out->variable = loop.frame + t->awaits.layout.locals + 8ULL * search.index;
	return 0;
}

/* Any task of the loop tells where tasks have what is wanted of them. */
static int find_slots(struct task_reader *t, struct trio_place *out)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t type, coro, name;
	int e = t->found.len ? object_type(r, t->found.items[0], &type) : -ENOENT;

	if (e < 0 || (e = object_slot(r, type, "coro", &coro)) < 0 ||
	    (e = object_slot(r, type, "name", &name)) < 0)
		return e;
	if (coro > UINT16_MAX || name > UINT16_MAX)
		return -EBADMSG;
	out->coro = coro;
	out->name = name;
	return 0;
}

/* What cannot be read of it leaves samples without tasks. */
static int note_place(struct task_reader *t, uint64_t frame)
{
	struct trio_place place = { 0 };
	int e;

	if (t->out->trio.variable)
		return 0;
	if ((e = find_place(t, frame, &place)) < 0 || (e = find_slots(t, &place)) < 0)
		return task_reader_stops(e) ? e : 0;
	t->out->trio = place;
	return 0;
}

static int read_runner(struct task_reader *t, uint64_t ident, uint64_t frame)
{
	uint64_t tasks;
	int e = get_attribute(t, t->runner, "tasks", &tasks);

	if (!e && tasks)
		e = object_set_each(&t->awaits.objects, tasks, add_task, t);
	if (!e)
		e = note_place(t, frame);
	if (!e)
		e = task_reader_visit_found(t, read_task);
	if (!e)
		task_reader_set_thread(t, t->runner, ident);
	return e;
}

static int read_thread(struct task_reader *t, uint64_t tstate)
{
	struct object_reader *r = &t->awaits.objects;
	const struct walk_frame *frames;
	uint64_t ident;
	uint32_t depth;
	int e = object_get_pointer(r, tstate + r->off->tstate_thread_id, &ident);

	if (e < 0 || (e = t->process->peek(t->process->arg, ident, &frames, &depth)) < 0)
		return e;
	for (uint32_t i = 0; i < depth; i++) {
		if (!is_run(t, &frames[i]))
			continue;
		e = find_variable(t, frames[i].frame, KIND_TRIO_RUNNER, &t->runner);
		return e < 0 ? e : read_runner(t, ident, frames[i].frame);
	}
	return 0;
}

static int read_interpreter(struct task_reader *t, uint64_t interp)
{
	uint64_t run;
	int e = object_global(&t->awaits.objects, interp, "trio._core._run", "unrolled_run", &run);

	return e < 0 ? e : task_reader_each_thread(t, interp, read_thread);
}

int trio_read(struct task_reader *t)
{
	return t->process->peek ? task_reader_each_interpreter(t, read_interpreter) : 0;
}
