/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/asyncio.h"

#include <errno.h>

#include "inspect/future.h"

#define WEAKREF_OBJECT 0 /* PyWeakReference.wr_object, from its head's end */
#define RUNNING_LOOP_KEY "__asyncio_running_event_loop__"
#define RUNNING_LOOP_HOLDER 0 /* PyRunningLoopHolder.rl_loop, the same; up to 3.11 */

/* --- tasks ------------------------------------------------------------------------------------ */

struct waiting {
	struct task_reader *t;
	uint64_t child;
};

static int add_parent(struct object_reader *r, uint64_t parent, void *arg)
{
	const struct waiting *w = arg;

	(void)r;
	return task_reader_edge(w->t, w->child, parent);
}

/* Of a task that waits for nothing, or for what is done, the next step is in the loop's queue. */
static int is_ready(struct task_reader *t, uint64_t fut_waiter)
{
	enum object_kind kind;
	struct future f;
	int e = object_kind(&t->awaits.kinds, &t->awaits.objects, fut_waiter, &kind);

	if (e < 0 || kind == KIND_NONE)
		return e < 0 ? e : 1;
	if (!kind_is_future(kind))
		return 0; /* of another make, that behaves like one */
	e = future_get(&t->awaits, fut_waiter, kind, &f);
	return e < 0 ? e : f.is_done;
}

static int read_task(struct task_reader *t, uint64_t object)
{
	struct waiting w = { .t = t, .child = object };
	enum object_kind kind;
	struct future f;
	int e;

	if ((e = object_kind(&t->awaits.kinds, &t->awaits.objects, object, &kind)) < 0)
		return e;
	if (!kind_is_task(kind))
		return kind == KIND_NONE ? 0 : -EBADMSG;
	if ((e = future_get(&t->awaits, object, kind, &f)) < 0 || f.is_done)
		return e;
	if ((e = is_ready(t, f.fut_waiter)) < 0)
		return e;
	e = task_reader_add(t, &(struct task_source){ .id = object,
						      .name = f.name,
						      .coro = f.coro,
						      .loop = f.loop,
						      .is_ready = e,
						      .future = f.fut_waiter,
						      .created = f.source_traceback });
	return e < 0 ? e : awaited_by_each(&t->awaits, &f, add_parent, &w);
}

static int add_task(struct object_reader *r, uint64_t object, void *arg)
{
	(void)r;
	return task_reader_find(arg, object);
}

static int add_referent(struct object_reader *r, uint64_t weakref, void *arg)
{
	uint64_t object;
	int e = object_get_pointer(r, weakref + r->head + WEAKREF_OBJECT, &object);

	return e < 0 || !object ? e : add_task(r, object, arg);
}

/* A WeakSet: its attribute `data` is a set of weak references. */
static int read_weak_set(struct task_reader *t, uint64_t interp, const char *name)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t set;
	int e;

	if ((e = object_global(r, interp, "asyncio.tasks", name, &set)) < 0 ||
	    (e = object_attribute(r, set, "data", &set)) < 0)
		return e;
	return object_set_each(r, set, add_referent, t);
}

static int read_set(struct task_reader *t, uint64_t interp, const char *name)
{
	uint64_t set;
	int e = object_global(&t->awaits.objects, interp, "asyncio.tasks", name, &set);

	return e < 0 ? e : object_set_each(&t->awaits.objects, set, add_task, t);
}

/* A ring of nodes, the head being one that is in no task: 3.14 on. */
static int read_list(struct task_reader *t, uint64_t head)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t node;
	int e = object_get_pointer(r, head, &node);

	for (unsigned int i = 0; i < TASKS_MAX && !e && node && node != head; i++) {
		e = add_task(r, node - t->awaits.layout.task_node, t);
		if (!e)
			e = object_get_pointer(r, node, &node);
	}
	return e;
}

static int add_running(struct object_reader *r, const struct object_entry *entry, void *arg)
{
	(void)r;
	task_reader_set_running(arg, entry->value);
	return 0;
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Which loop it runs, by the key in the thread's dict: up to 3.12. */
static int loop_in_dict(struct task_reader *t, uint64_t tstate, uint64_t *loop)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t dict, value;
	int e = object_get_pointer(r, tstate + t->awaits.layout.tstate_dict, &dict);

	if (e < 0 || !dict)
		return e < 0 ? e : -ENOENT;
	if ((e = object_dict_get_str(r, dict, RUNNING_LOOP_KEY, &value)) < 0)
		return e;
	if (r->off->minor >= 12) {
		*loop = value;
		return 0;
	}
	return object_get_pointer(r, value + r->head + RUNNING_LOOP_HOLDER, loop);
}

/* Sets the thread of the loop that it runs, if it is one that has tasks. */
static int read_running_loop(struct task_reader *t, uint64_t tstate, uint64_t ident)
{
	const struct task_layout *l = &t->awaits.layout;
	struct object_reader *r = &t->awaits.objects;
	uint64_t loop = 0;
	int e;

	if (l->tstate_dict)
		e = loop_in_dict(t, tstate, &loop);
	else
		e = object_get_pointer(r, tstate + l->running_loop, &loop);
	if (!e)
		task_reader_set_thread(t, loop, ident);
	if (!e && l->running_loop_2 &&
	    !(e = object_get_pointer(r, tstate + l->running_loop_2, &loop)))
		task_reader_set_thread(t, loop, ident);
	return e;
}

static int read_thread_tasks(struct task_reader *t, uint64_t tstate)
{
	const struct task_layout *l = &t->awaits.layout;

	return l->tstate_tasks ? read_list(t, tstate + l->tstate_tasks) : 0;
}

/* What is known once all tasks are. */
static int read_thread_state(struct task_reader *t, uint64_t tstate)
{
	struct object_reader *r = &t->awaits.objects;
	uint64_t ident, task;
	int e = object_get_pointer(r, tstate + r->off->tstate_thread_id, &ident);

	if (!e && t->awaits.layout.running_task &&
	    !(e = object_get_pointer(r, tstate + t->awaits.layout.running_task, &task)))
		task_reader_set_running(t, task);
	return e < 0 ? e : read_running_loop(t, tstate, ident);
}

/* --- interpreters ----------------------------------------------------------------------------- */

/* Where tasks are kept: what a version does not have is not there. */
static int read_interpreter(struct task_reader *t, uint64_t interp)
{
	const struct task_layout *l = &t->awaits.layout;
	struct object_reader *r = &t->awaits.objects;
	uint64_t current;
	int e;

	if ((e = object_global(r, interp, "asyncio.tasks", "_current_tasks", &current)) < 0)
		return e; /* asyncio is not in use here */
	t->out->has_asyncio = true;
	t->out->current_tasks = current;
	if (task_reader_stops(
		    e = read_weak_set(t, interp,
				      r->off->minor < 12 ? "_all_tasks" : "_scheduled_tasks")) ||
	    task_reader_stops(e = r->off->minor < 12 ? 0 : read_set(t, interp, "_eager_tasks")) ||
	    task_reader_stops(e = task_reader_each_thread(t, interp, read_thread_tasks)) ||
	    task_reader_stops(e = l->interp_tasks ? read_list(t, interp + l->interp_tasks) : 0) ||
	    task_reader_stops(e = task_reader_visit_found(t, read_task)) ||
	    task_reader_stops(e = task_reader_each_thread(t, interp, read_thread_state)))
		return e;
	return object_dict_each(r, current, add_running, t);
}

int asyncio_read_only(struct task_reader *t)
{
	int e = 0;

	for (size_t i = 0; i < t->process->only_len && !e; i++)
		e = task_reader_visit(t, t->process->only[i], read_task);
	return e;
}

int asyncio_read(struct task_reader *t)
{
	return task_reader_each_interpreter(t, read_interpreter);
}
