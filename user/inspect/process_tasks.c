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

/* A thread of Python's, and how often it had left the CPU when the reading began. */
struct watch {
	const struct inspect_thread *thread;
	bool was_running; /* or it has ended */
	uint64_t switches;
};

struct reading {
	struct inspector *in;
	struct inspect_process *p;
	struct watch *watches;
	size_t count;
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

static int walk_thread(void *arg, uint64_t ident, const struct walk_frame **frames, uint32_t *depth)
{
	struct reading *r = arg;
	const struct watch *w = watch_of(r, ident);
	int e;

	if (!w || w->was_running)
		return -ENOENT;
	e = walker_walk(r->in->walker, &r->p->memory, w->thread->tid, ident, &r->walk);
	if (e < 0 || r->walk.status == UNWIND_INVALID)
		return e < 0 ? e : -EBADMSG;
	*frames = r->walk.frames;
	*depth = r->walk.depth;
	return 0;
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

static int read_once(struct reading *r, const uint64_t *debug, struct inspect_tasks *out)
{
	const struct tasks_process process = { .read = read_memory,
					       .arg = r,
					       .off = r->p->memory.off,
					       .runtime = r->p->memory.runtime,
					       .reads_max = TASK_READS_MAX,
					       .asyncio_debug = debug,
					       .walk = walk_thread };
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
	int e = 1;

	for (size_t i = 0; i < ATTEMPTS && e > 0; i++) {
		struct timespec pause = { .tv_nsec = pauses_us[i] * 1000L };

		if (pauses_us[i])
			nanosleep(&pause, NULL);
		inspect_tasks_release(out);
		e = read_once(r, debug, out);
	}
	return e < 0 ? e : 0;
}

int process_tasks_read(struct inspector *in, struct inspect_process *p, struct inspect_tasks *out)
{
	struct reading r = { .in = in, .p = p };
	int e;

	r.watches = calloc(p->thread_count + 1, sizeof(*r.watches));
	if (!r.watches)
		return -ENOMEM;
	for (size_t i = 0; i < p->thread_count; i++) {
		const struct inspect_thread *thread = &p->threads[i];

		if (!thread->tstate)
			continue; /* it runs no Python, hence no loop */
		r.watches[r.count++].thread = thread;
	}
	e = read_all(&r, out);
	free(r.watches);
	return e;
}
