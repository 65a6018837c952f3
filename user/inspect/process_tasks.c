/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/process_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "inspect/asyncio_debug.h"
#include "inspect/thread_files.h"

/* Between one attempt and the next; the first three meet a loop that is seldom busy. */
static const uint32_t pauses_us[] = { 0, 100, 300, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000 };
#define ATTEMPTS (sizeof(pauses_us) / sizeof(*pauses_us))
#define ATTEMPTS_NS 500000000ULL /* that they take; of one that takes long there are few */

/* A thread of Python's, and how often it had left the CPU when the reading began. */
struct watch {
	struct inspect_thread *thread;
	bool was_running; /* or it has ended */
	uint64_t switches;
};

struct reading {
	struct inspector *in;
	struct inspect_process *p;
	struct watch *watches;
	size_t count;
	bool is_last; /* what runs now is taken as it runs */
	struct walk walk;
};

static int read_status(int folder, struct thread_status *out)
{
	_cleanup_(closep) int fd = folder < 0 ? -1 : thread_status_open(folder);

	return fd < 0 ? -ESRCH : thread_status_read(fd, out);
}

static void watch_begin(const struct reading *r, struct watch *w)
{
	_cleanup_(closep) int folder = thread_folder_open(r->p->door, w->thread->tid);
	struct thread_status status;

	w->was_running = read_status(folder, &status) < 0 || status.state == 'R';
	w->switches = w->was_running ? 0 : status.switches;
}

/* Was it off the CPU since then? As thread_is_still() in threads.c has it. */
static bool watch_is_still(const struct reading *r, const struct watch *w)
{
	_cleanup_(closep) int folder = thread_folder_open(r->p->door, w->thread->tid);
	struct thread_status status;
	struct thread_call call;
	bool has_call = folder >= 0 && thread_call_read(folder, &call) >= 0;

	if (w->was_running || (has_call && call.is_running) || read_status(folder, &status) < 0)
		return false;
	return status.switches == w->switches && (has_call || status.state != 'R');
}

static const struct watch *watch_of(const struct reading *r, uint64_t ident)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->watches[i].thread->pointer == ident)
			return &r->watches[i];
	return NULL;
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct reading *r = arg;

	return r->p->memory.read(r->p->memory.arg, addr, buf, len);
}

/* One that runs walks itself, if that can be had; else it is read from outside, maybe torn. */
static int walk_of_thread(struct reading *r, const struct watch *w)
{
	int e = w->was_running && r->is_last
			? inspect_thread_walk_own(r->in, r->p, w->thread, &r->walk)
			: -ENOENT;

	return e != -ENOENT
		       ? e
		       : walker_walk(r->in->walker, &r->p->memory, &w->thread->walked, &r->walk);
}

static int peek_thread(void *arg, uint64_t ident, const struct walk_frame **frames, uint32_t *depth)
{
	struct reading *r = arg;
	const struct watch *w = watch_of(r, ident);
	int e;

	if (!w)
		return -ENOENT;
	e = walk_of_thread(r, w);
	if (e < 0 || r->walk.status == UNWIND_INVALID)
		return e < 0 ? e : -EBADMSG;
	*frames = r->walk.frames;
	*depth = r->walk.depth;
	return 0;
}

static int walk_thread(void *arg, uint64_t ident, const struct walk_frame **frames, uint32_t *depth)
{
	const struct reading *r = arg;
	const struct watch *w = watch_of(r, ident);

	return !w || (w->was_running && !r->is_last) ? -ENOENT
						     : peek_thread(arg, ident, frames, depth);
}

/*
 * Says of each loop whether its thread stood still. Returns how many did not; one that nothing is
 * known of as none of its tasks could be read counts, too.
 */
static size_t judge(const struct reading *r, struct inspect_tasks *tasks)
{
	size_t moved = !tasks->loops.len && tasks->unreadable;

	for (size_t i = 0; i < tasks->loops.len; i++) {
		struct inspect_loop *loop = &tasks->loops.items[i];
		const struct watch *w = loop->ident ? watch_of(r, loop->ident) : NULL;

		loop->tid = w ? w->thread->tid : 0;
		loop->is_consistent = !loop->ident || (w && watch_is_still(r, w));
		moved += !loop->is_consistent;
	}
	return moved;
}

static struct tasks_process process_of(struct reading *r, const uint64_t *debug,
				       struct pages *pages)
{
	return (struct tasks_process){ .read = read_memory,
				       .arg = r,
				       .off = r->p->memory.off,
				       .runtime = r->p->memory.runtime,
				       .reads_max = TASK_READS_MAX,
				       .asyncio_debug = debug,
				       .pages = pages,
				       .no_words = pages,
				       .has_greenlets = !pages,
				       .walk = walk_thread,
				       .peek = peek_thread };
}

static int read_once(struct reading *r, const uint64_t *debug, struct pages *pages,
		     struct inspect_tasks *out)
{
	const struct tasks_process process = process_of(r, debug, pages);
	int e;

	for (size_t i = 0; i < r->count; i++)
		watch_begin(r, &r->watches[i]);
	if ((e = tasks_collect(&process, out)) < 0)
		return e;
	return judge(r, out) ? 1 : 0;
}

static int read_all(struct reading *r, struct inspect_tasks *out)
{
	uint64_t words[ASYNCIO_DEBUG_WORDS];
	const uint64_t *debug = asyncio_debug_find(r->p, words) < 0 ? NULL : words;
	const uint64_t began_ns = monotonic_ns();
	int e = 1;

	for (size_t i = 0; i < ATTEMPTS && e > 0 && !r->is_last; i++) {
		struct timespec pause = { .tv_nsec = pauses_us[i] * 1000L };

		if (pauses_us[i])
			nanosleep(&pause, NULL);
		inspect_tasks_release(out);
		r->is_last = i + 1 == ATTEMPTS || monotonic_ns() - began_ns > ATTEMPTS_NS;
		e = read_once(r, debug, NULL, out);
	}
	return e < 0 ? e : 0;
}

static int watch_threads(struct reading *r)
{
	r->watches = calloc(r->p->thread_count + 1, sizeof(*r->watches));
	if (!r->watches)
		return -ENOMEM;
	for (size_t i = 0; i < r->p->thread_count; i++) {
		struct inspect_thread *thread = &r->p->threads[i];

		if (!thread->tstate)
			continue; /* it runs no Python, hence no loop */
		r->watches[r->count++].thread = thread;
	}
	return 0;
}

int process_tasks_read(struct inspector *in, struct inspect_process *p, struct inspect_tasks *out)
{
	struct reading r = { .in = in, .p = p };
	int e = watch_threads(&r);

	if (!e)
		e = read_all(&r, out);
	free(r.watches);
	return e;
}

/* --- again and again -------------------------------------------------------------------------- */

static bool is_same(const struct inspect_tasks *x, const struct inspect_task *a,
		    const struct inspect_tasks *y, const struct inspect_task *b)
{
	if (a->state != b->state || a->frames_len != b->frames_len)
		return false;
	for (uint32_t i = 0; i < a->frames_len; i++) {
		const struct task_frame *f = &x->frames.items[a->frames + i];
		const struct task_frame *g = &y->frames.items[b->frames + i];

		if (f->frame != g->frame || f->line != g->line)
			return false;
	}
	return true;
}

/* Tasks that are unsure: what another reading tells alike was not torn. */
static int confirm(const struct inspect_tasks *other, struct inspect_tasks *out)
{
	struct address_map places = { 0 };
	int e = 0;

	for (uint32_t i = 0; i < other->tasks.len && !e; i++)
		e = address_map_put(&places, other->tasks.items[i].id, i);
	for (size_t i = 0; i < out->tasks.len && !e; i++) {
		struct inspect_task *task = &out->tasks.items[i];
		uint32_t place =
			task->is_unsure ? address_map_get(&places, task->id) : ADDRESS_NONE;

		if (place != ADDRESS_NONE)
			task->is_unsure = !is_same(other, &other->tasks.items[place], out, task);
	}
	address_map_release(&places);
	return e;
}

/* Those that have changed meanwhile are read once more: they are few, and soon read. */
static int confirm_rest(struct reading *r, const uint64_t *debug, struct pages *pages,
			struct inspect_tasks *out)
{
	_cleanup_(freep) uint64_t *ids = calloc(out->tasks.len + 1, sizeof(*ids));
	struct tasks_process process = process_of(r, debug, pages);
	struct inspect_tasks again = { 0 };
	int e;

	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < out->tasks.len; i++)
		if (out->tasks.items[i].is_unsure)
			ids[process.only_len++] = out->tasks.items[i].id;
	process.only = ids;
	process.walk = process.peek = NULL;
	e = process.only_len ? tasks_collect(&process, &again) : 0;
	if (e >= 0)
		e = confirm(&again, out);
	inspect_tasks_release(&again);
	return e;
}

static int sweep_again(struct reading *r, const uint64_t *debug, struct pages *pages,
		       struct inspect_tasks *out)
{
	struct inspect_tasks first = *out;
	int e;

	*out = (struct inspect_tasks){ 0 };
	e = read_once(r, debug, pages, out);
	if (e > 0) {
		for (size_t i = 0; i < out->tasks.len; i++) {
			struct inspect_task *task = &out->tasks.items[i];

			task->is_unsure = !out->loops.items[task->loop].is_consistent;
		}
		e = confirm(&first, out);
		if (e >= 0)
			e = confirm_rest(r, debug, pages, out);
	}
	inspect_tasks_release(&first);
	return e;
}

int process_tasks_sweep(struct inspector *in, struct inspect_process *p,
			const uint64_t *asyncio_debug, struct pages *pages,
			struct inspect_tasks *out)
{
	struct reading r = { .in = in, .p = p };
	int e = watch_threads(&r);

	if (!e)
		e = read_once(&r, asyncio_debug, pages, out);
	if (e > 0)
		e = sweep_again(&r, asyncio_debug, pages, out);
	free(r.watches);
	return e;
}

int process_tasks_probe(struct inspect_process *p, struct pages *pages)
{
	struct reading r = { .p = p };
	const struct tasks_process process = process_of(&r, NULL, pages);

	return tasks_probe(&process);
}
