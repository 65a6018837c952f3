/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/cdefs.h> /* __always_inline */
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "bpf/syscalls.h"
#include "inspect/pages.h"
#include "inspect/process.h"
#include "inspect/thread_files.h"
#include "inspect/tstates.h"
#include "symbolize/pystring.h"
#include "target/maps.h"
#include "target/threading.h"

#define THREADS_MAX 65536

/* Pauses before those that moved are read again, microseconds: some 50 ms in all. */
static const uint16_t pauses_us[] = { 0, 250, 500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000 };
#define PASSES (sizeof(pauses_us) / sizeof(pauses_us[0]))
#define OWN_PASS 3 /* those that still move then run a lot, or wait for a CPU: the kernel looks */

/* A thread that runs was last seen on its CPU a tick ago, 10 ms at most (CONFIG_HZ=100). */
#define RUNNING_NS_MAX 20000000

/* One thread as it is read. */
struct subject {
	struct inspect_thread *thread;
	pid_t nspid; /* in its own PID namespace */
	bool is_done;
};

struct stack_range {
	uint64_t start, end;
};

struct reading {
	struct inspector *in;
	struct inspect_process *p;
	struct subject *subjects;
	size_t count;
	size_t next;       /* where next_subject() looks first */
	bool has_own_pids; /* it is in a PID namespace below ours */
	struct threading_process threading;
	struct {
		struct stack_range *items; /* a VEC: where stacks may be; empty: not asked yet */
		size_t len, cap;
	} stacks;
	bool may_lend;      /* a thread has made several states, or one that made some is gone */
	struct pages names; /* through which that is read: of all threads they lie close together */
};

/* --- One look --------------------------------------------------------------------------------- */

struct look {
	struct thread_status before, after;
	struct thread_call call;
	bool has_call; /* /proc/.../syscall can be read */
	bool has_walk;
	struct walk walk;
	bool has_stand; /* the kernel saw it off the CPU; the next two are known, else of
			 * thread_cpu_read(), thread_sched_read() */
	unsigned cpu;
	uint64_t exec_start_ns;
};

/*
 * Was it off the CPU from the first look at its switches to the call? The file `syscall` tells what
 * a thread is in only if that was off the CPU just then, and a thread that was on it between the
 * two had left it again meanwhile: then it has switched once more than before. (State S alone says
 * too little: it is set some time before a thread goes to sleep, and it may not do so.)
 */
static bool thread_is_still(const struct look *l)
{
	if (l->before.switches != l->after.switches)
		return false;
	return l->has_call ? !l->call.is_running
			   : l->before.state != 'R' && l->after.state == l->before.state;
}

/* What is taken from the walk, before it is known whether that counts. */
static int take_walk(struct reading *r, struct inspect_thread *t, const struct look *l)
{
	struct inspect_frame *frames = NULL;
	size_t count = 0;
	int e = 0;

	if (l->has_walk)
		e = stack_read(r->p->codes, r->in->walker, &r->p->memory, &l->walk, &frames,
			       &count);
	if (e < 0)
		return e;
	stack_free(t->frames, t->frame_count);
	free(t->handles);
	t->frames = frames;
	t->frame_count = count;
	t->handles = l->has_walk && l->walk.exception
			     ? stack_type_name(&r->p->memory, l->walk.exception)
			     : NULL;
	t->status = l->walk.status;
	t->is_guess = l->has_walk && l->walk.flags & SAMPLE_AMBIGUOUS;
	if (l->has_walk) {
		t->tstate = l->walk.tstate;
		t->interp = l->walk.interp;
		t->gil = l->walk.gil;
		t->in_gc = l->walk.flags & SAMPLE_IN_GC;
		t->holds_gil =
			l->walk.flags & SAMPLE_HOLDS_GIL && !r->p->runtime.offsets.is_free_threaded;
	}
	return 0;
}

/* --- What it does ----------------------------------------------------------------------------- */

/* As the kernel has it: the file system, which may be what the thread hangs at, is not asked. */
static uint32_t file_type(pid_t pid, uint64_t fd)
{
	char path[64];
	struct statx st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%u", pid, (unsigned)fd);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0
		       ? 0
		       : st.stx_mode & MODE_TYPE;
}

static bool is_of_file(uint8_t wait)
{
	return wait == WAIT_LOCK_FILE || (wait >= WAIT_READ_SOCKET && wait <= WAIT_WRITE_PIPE);
}

static void take_call(const struct reading *r, struct inspect_thread *t, const struct look *l)
{
	const struct thread_call *call = &l->call;

	if (!l->has_call)
		return;
	if (call->nr < 0) {
		t->wait = l->after.state == 'D' ? WAIT_FAULT : WAIT_OTHER;
		return;
	}
	t->wait = wait_of_syscall(call->nr, call->args[0], call->args[1]);
	if (t->wait == WAIT_OTHER)
		t->syscall = (uint16_t)(call->nr < SYSCALL_NONE ? call->nr : SYSCALL_NONE);
	if (syscall_waits_for_futex(call->nr, call->args[1]))
		t->futex = call->args[0];
	if (l->has_walk && t->futex && walk_gil_has_word(l->walk.gil, t->futex)) {
		t->waits_for_gil = true;
		t->wait = WAIT_GIL;
	}
	if (!is_of_file(t->wait))
		return;
	t->fd = (int)call->args[0];
	if (t->wait == WAIT_READ_FILE || t->wait == WAIT_WRITE_FILE)
		t->wait = wait_of_file_type(t->wait, file_type(r->p->door, call->args[0]));
}

/*
 * Since when it is off the CPU; for one that runs, since the last tick. -1: not known. The kernel
 * forgets it of a thread that it moves to another CPU, until that runs there
 * (migrate_task_rq_fair() of kernel/sched/fair.c): then *is_moved.
 */
static int64_t off_cpu_ns(const struct reading *r, int folder, const struct look *l, bool *is_moved)
{
	uint64_t exec_start_ns = l->exec_start_ns;
	unsigned cpu = l->cpu;
	int64_t behind_ns, ns;

	if ((!l->has_stand && (thread_cpu_read(folder, &cpu) < 0 ||
			       thread_sched_read(folder, &exec_start_ns) < 0)) ||
	    !cpu_clocks_behind(r->in->clocks, cpu, &behind_ns))
		return -1;
	*is_moved = !exec_start_ns;
	if (*is_moved)
		return -1;
	ns = (int64_t)(monotonic_ns() - exec_start_ns) - behind_ns;
	return ns < 0 ? 0 : ns;
}

static void take_state(const struct reading *r, struct inspect_thread *t, int folder,
		       const struct look *l)
{
	const bool is_running =
		l->has_call ? l->call.is_running && l->after.state == 'R' : l->after.state == 'R';
	bool is_moved = false;

	memcpy(t->comm, l->after.comm, sizeof(t->comm));
	t->switches = l->after.switches;
	t->wait = WAIT_NONE;
	t->syscall = SYSCALL_NONE;
	t->fd = -1;
	t->futex = 0;
	t->waits_for_gil = false;
	t->wait_ns = off_cpu_ns(r, folder, l, &is_moved);
	if (strchr("ZX", l->after.state)) {
		t->state = THREAD_DEAD;
		t->wait_ns = -1;
	} else if (strchr("Tt", l->after.state) || (r->p->is_frozen && !is_running)) {
		t->state = THREAD_STOPPED;
		t->wait = WAIT_STOPPED;
	} else if (is_running || (l->has_call && l->call.is_running)) {
		t->state = l->has_stand || is_moved || t->wait_ns > RUNNING_NS_MAX ? THREAD_RUNNABLE
										   : THREAD_RUNNING;
		if (t->state == THREAD_RUNNING)
			t->wait_ns = -1;
	} else {
		t->state = THREAD_BLOCKED;
		take_call(r, t, l);
		if (t->waits_for_gil)
			t->wait_ns = -1; /* it wakes up every 5 ms to ask for it */
	}
}

/* --- One thread ------------------------------------------------------------------------------- */

static bool has_ended(int e)
{
	return e == -ESRCH || e == -ENOENT;
}

static void drop_walk(struct reading *r, struct inspect_thread *t, size_t codes)
{
	stack_free(t->frames, t->frame_count);
	t->frames = NULL;
	t->frame_count = 0;
	codes_forget(r->p->codes, codes);
}

/* Where the mapping ends that a thread's stack is in. 0: not known. */
static uint64_t stack_end_of(struct reading *r, uint64_t sp)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int e = r->stacks.len ? 0 : maps_open(r->p->pid, &maps);

	if (e < 0)
		err_clear();
	while (maps && maps_next(maps, &m) > 0)
		if (!m.inode && m.perms & PROT_WRITE &&
		    vec_push(&r->stacks, ((struct stack_range){ m.start, m.end })) < 0)
			break;
	for (size_t i = 0; i < r->stacks.len; i++)
		if (sp - r->stacks.items[i].start <
		    r->stacks.items[i].end - r->stacks.items[i].start)
			return r->stacks.items[i].end;
	return 0;
}

/* Where its stack is: by that alone is a thread known that has made no thread state. False: it has
 * made none, and that is not known. */
static bool find_stack(struct reading *r, struct inspect_thread *t, int folder)
{
	struct thread_call call;

	if (thread_call_read(folder, &call) >= 0)
		t->walked.sp = call.sp;
	if (!t->tstate && t->walked.sp)
		t->walked.stack_end = stack_end_of(r, t->walked.sp);
	return t->tstate || t->walked.stack_end;
}

static bool walk_thread(const struct reading *r, const struct inspect_thread *t, struct look *l)
{
	return !walker_walk(r->in->walker, &r->p->memory, &t->walked, &l->walk);
}

/* Where each thread has its own, and it runs something, no more needs to be known. */
static void walk_look(struct reading *r, struct inspect_thread *t, int folder, struct look *l)
{
	t->walked.sp = 0;
	l->has_walk = t->tstate && !r->may_lend && walk_thread(r, t, l);
	if ((!l->has_walk || !l->walk.depth) && find_stack(r, t, folder))
		l->has_walk = walk_thread(r, t, l);
}

/* All of it, between two looks at its switches. Returns 1 if it stood still, or is_last, else 0. */
static int look_at(struct reading *r, struct inspect_thread *t, int folder, bool is_last,
		   struct look *l)
{
	_cleanup_(closep) int status_fd = thread_status_open(folder);
	size_t codes = codes_count(r->p->codes);
	int e = status_fd < 0 ? status_fd : thread_status_read(status_fd, &l->before);

	if (e < 0)
		return e;
	if (l->before.state == 'R' && !is_last)
		return 0;
	window_begin(&r->p->window);
	walk_look(r, t, folder, l);
	e = take_walk(r, t, l);
	if (e >= 0 && l->has_walk && r->in->visit)
		e = r->in->visit(r->in->visit_arg, r->p, t);
	window_end(&r->p->window);
	if (e < 0)
		return e;
	e = thread_call_read(folder, &l->call);
	l->has_call = e >= 0;
	e = thread_status_read(status_fd, &l->after);
	t->is_consistent = e >= 0 && thread_is_still(l) && (l->has_walk || !t->tstate);
	if (e < 0 || (!t->is_consistent && !is_last) || strchr("ZX", l->after.state))
		drop_walk(r, t, codes);
	return e < 0 ? e : t->is_consistent || is_last;
}

/* Returns 1 if it is done. */
static int read_thread(struct reading *r, struct subject *s, bool is_last)
{
	struct inspect_thread *t = s->thread;
	_cleanup_(closep) int folder = thread_folder_open(r->p->door, t->tid);
	struct look l = { 0 };
	int e = folder < 0 ? folder : look_at(r, t, folder, is_last, &l);

	if (has_ended(e)) {
		t->state = THREAD_DEAD;
		return 1;
	}
	if (e > 0)
		take_state(r, t, folder, &l);
	return e;
}

static void take_name(struct reading *r, struct inspect_thread *t)
{
	struct threading_name name;
	struct pystring text;
	char utf8[PYSTRING_UTF8_BYTES(sizeof(name.bytes))];
	int e;

	if (!t->tstate)
		return;
	e = threading_name(&r->threading, t->pointer, &name);
	if (e < 0)
		return;
	text = (struct pystring){
		.bytes = name.bytes, .len = name.len, .kind = name.kind, .is_cut = name.is_cut
	};
	if (pystring_utf8(&text, utf8, sizeof(utf8)) >= 0)
		t->name = strdup(utf8); /* without memory it has none */
}

/* --- Threads that run ------------------------------------------------------------------------- */

struct own_reading {
	struct reading *r;
	struct subject **of_ask;
};

/* It has gone on since: names of code that is not there any more are not known. Returns of how many
 * calls. */
static int name_late(struct reading *r, struct own_walk *w)
{
	const struct inspect_code *code;
	int unknown = 0;

	for (uint32_t i = 0; i < w->head.depth && i < FRAMES_MAX; i++) {
		struct walk_frame *f = &w->frames[i];
		int e = f->identity ? codes_get_late(r->p->codes, r->in->walker, &r->p->memory,
						     f->identity, f->code, &code)
				    : 0;

		if (e == -ENOMEM)
			return e;
		if (e < 0)
			f->identity = 0;
		unknown += !f->identity && !(f->flags & FRAME_INTERPRETER);
	}
	return unknown;
}

/* It ran as it was walked, whatever it does by now. */
static void be_running(struct inspect_thread *t, const struct own_walk *w,
		       const struct thread_status *now)
{
	memcpy(t->comm, now->comm, sizeof(t->comm));
	t->switches = now->switches;
	t->state = THREAD_RUNNING;
	t->is_consistent = true;
	t->pause_ns = (int64_t)(w->ended_ns - w->began_ns);
}

/* What a thread has found of itself. One that has ended since is left to the next pass. */
static int take_own(void *arg, size_t i, struct own_walk *w)
{
	const struct own_reading *o = arg;
	struct subject *s = o->of_ask[i];
	struct inspect_thread *t = s->thread;
	_cleanup_(closep) int folder = thread_folder_open(o->r->p->door, t->tid), fd = -1;
	struct look l = { .has_walk = true, .walk = walk_of(&w->head, w->frames) };
	int e;

	fd = folder < 0 ? -1 : thread_status_open(folder);
	if (w->result || fd < 0 || thread_status_read(fd, &l.after) < 0)
		return 0;
	if ((e = name_late(o->r, w)) < 0 || (e = take_walk(o->r, t, &l)) < 0)
		return e;
	be_running(t, w, &l.after);
	take_name(o->r, t);
	s->is_done = true;
	return 0;
}

/* Variables can only be read of who stands still as long as we read them. */
static bool has_kernel(const struct inspector *in)
{
	return in->kernel && !in->visit;
}

/* Where the kernel refuses it is done as if there were no BPF. */
static int do_without(int r, const char *what)
{
	if (r >= 0 || r == -ENOMEM)
		return r;
	log_debug("%s are read from outside: %s", what, err_message(r));
	err_clear();
	return 0;
}

static struct own_ask ask_of(const struct inspect_process *p, const struct inspect_thread *t)
{
	return (struct own_ask){ .pointer = t->pointer,
				 .runtime = p->memory.runtime,
				 .process = p->memory.identity,
				 .tid = (uint32_t)t->tid };
}

/* Has it a thread state, or may it run another thread's? */
static bool may_be_pythons(const struct reading *r, const struct subject *s)
{
	return s->thread->tstate || r->may_lend;
}

/* Has all that are not done walk themselves, if they run. They may wait for a CPU for long. */
static int walk_own(struct reading *r)
{
	_cleanup_(freep) struct own_ask *asks = calloc(r->count, sizeof(*asks));
	_cleanup_(freep) struct subject **of_ask = calloc(r->count, sizeof(struct subject *));
	struct own_reading own = { .r = r, .of_ask = of_ask };
	size_t count = 0;
	int e;

	if (!asks || !of_ask)
		return -ENOMEM;
	for (size_t i = 0; i < r->count; i++) {
		struct subject *s = &r->subjects[i];

		if (s->is_done || !may_be_pythons(r, s))
			continue;
		of_ask[count] = s;
		asks[count++] = ask_of(r->p, s->thread);
	}
	e = r->in->kernel->run(r->in->kernel_arg, r->p->memory.off, asks, count, take_own, &own);
	return do_without(e, "threads that run");
}

struct one_walk {
	struct inspector *in;
	struct inspect_process *p;
	struct inspect_thread *thread;
	struct walk *out;
	bool is_taken;
};

/* Code that is not there any more is none. */
static int take_one(void *arg, size_t i, struct own_walk *w)
{
	struct one_walk *one = arg;
	int64_t pause_ns = (int64_t)(w->ended_ns - w->began_ns);

	(void)i;
	if (w->result)
		return 0;
	for (uint32_t k = 0; k < w->head.depth && k < FRAMES_MAX; k++) {
		struct walk_frame *f = &w->frames[k];

		if (walker_identify(one->in->walker, &one->p->memory, f->code) != f->identity)
			f->code = 0;
	}
	if (pause_ns > one->thread->pause_ns)
		one->thread->pause_ns = pause_ns;
	*one->out = walk_of(&w->head, w->frames);
	one->is_taken = true;
	return 0;
}

int inspect_thread_walk_own(struct inspector *in, struct inspect_process *p,
			    struct inspect_thread *t, struct walk *out)
{
	const struct own_ask ask = ask_of(p, t);
	struct one_walk one = { .in = in, .p = p, .thread = t, .out = out };
	int e = -ENOENT;

	if (has_kernel(in))
		e = do_without(
			in->kernel->run(in->kernel_arg, p->memory.off, &ask, 1, take_one, &one),
			"threads that run");
	return e < 0 || one.is_taken ? e : -ENOENT;
}

/* --- Many threads ----------------------------------------------------------------------------- */

/* As proc_pid_status(5) has it: the bits of task_struct.__state, TASK_* of linux/sched.h. */
static char state_letter(uint32_t state)
{
	enum { STOPPED = 4, TRACED = 8, INTERRUPTIBLE = 1 };

	return !state ? 'R' : state & (STOPPED | TRACED) ? 'T' : state & INTERRUPTIBLE ? 'S' : 'D';
}

/* The thread of this number. They come in the order of their numbers. */
static struct subject *next_subject(struct reading *r, uint32_t tid)
{
	for (size_t i = 0; i < r->count; i++) {
		struct subject *s = &r->subjects[(r->next + i) % r->count];

		if (s->thread->tid != (pid_t)tid)
			continue;
		r->next = (r->next + i + 1) % r->count;
		return s;
	}
	return NULL;
}

/* Is there nothing that another look could make better? */
static bool is_whole(const struct own_walk *w)
{
	return w->state == OWN_DONE && !w->result &&
	       (w->head.status == UNWIND_COMPLETE || w->head.status == UNWIND_TRUNCATED ||
		w->head.status == UNWIND_CUT);
}

/* What the kernel has found of a thread that stood still. What is not whole is left to the passes.
 */
static int take_still(void *arg, size_t i, struct own_walk *w)
{
	struct reading *r = arg;
	struct subject *s = is_whole(w) ? next_subject(r, w->asked.tid) : NULL;
	const struct task_stand *stand = &w->stand;
	struct look l = { .has_call = true,
			  .call = { .is_running = !stand->task_state,
				    .nr = stand->syscall < 0 ? -1 : stand->syscall,
				    .args = { stand->args[0], stand->args[1] } },
			  .has_walk = true,
			  .walk = walk_of(&w->head, w->frames),
			  .after = { .state = state_letter(stand->task_state),
				     .switches = stand->switches },
			  .has_stand = true,
			  .cpu = stand->cpu,
			  .exec_start_ns = stand->exec_start_ns };
	int e;

	(void)i;
	if (!s || s->is_done)
		return 0;
	memcpy(l.after.comm, stand->comm, sizeof(l.after.comm));
	if ((e = name_late(r, w)) || (e = take_walk(r, s->thread, &l)) < 0)
		return e < 0 ? e : 0;
	s->thread->pointer = w->asked.pointer;
	s->thread->walked.pointer = w->asked.pointer;
	s->thread->is_consistent = true;
	take_state(r, s->thread, -1, &l);
	take_name(r, s->thread);
	s->is_done = true;
	return 0;
}

/*
 * The kernel looks at all that stand still, in one pass: also at those that wait for a CPU, which
 * from outside cannot be told from those that run.
 */
static int look_at_all(struct reading *r)
{
	const struct own_ask process = { .runtime = r->p->memory.runtime,
					 .process = r->p->memory.identity,
					 .tid = (uint32_t)r->p->pid };

	return do_without(
		r->in->kernel->look(r->in->kernel_arg, r->p->memory.off, &process, take_still, r),
		"threads that stand still");
}

/* Before any is read from outside: where there are many that is cheaper. */
static int look_at_many(struct reading *r)
{
	return has_kernel(r->in) && r->count >= INSPECT_MANY_THREADS ? look_at_all(r) : 0;
}

/* Does a thread of Python's move whenever it is looked at? */
static bool some_move(const struct reading *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (!r->subjects[i].is_done && may_be_pythons(r, &r->subjects[i]))
			return true;
	return false;
}

static int ask_kernel(struct reading *r)
{
	int e = has_kernel(r->in) && some_move(r) ? look_at_all(r) : 0;

	return e < 0 || !has_kernel(r->in) || !some_move(r) ? e : walk_own(r);
}

/* --- Passes ----------------------------------------------------------------------------------- */

/* All that are not done, once. Returns how many are left. */
static int pass(struct reading *r, bool is_last)
{
	int left = 0;

	pages_forget(&r->names);
	for (size_t i = 0; i < r->count; i++) {
		struct subject *s = &r->subjects[i];
		int e;

		if (s->is_done)
			continue;
		e = read_thread(r, s, is_last);
		if (e < 0)
			return e;
		s->is_done = e > 0;
		left += !e;
		if (s->is_done)
			take_name(r, s->thread);
	}
	return left;
}

static int read_all(struct reading *r)
{
	int left = 1, e;

	for (size_t i = 0; i < PASSES && left > 0; i++) {
		struct timespec pause = timespec_of(pauses_us[i] * 1000ULL);

		if (pauses_us[i])
			nanosleep(&pause, NULL);
		if (i == OWN_PASS && (e = ask_kernel(r)) < 0)
			return e;
		left = pass(r, i + 1 == PASSES);
	}
	return left;
}

/* --- All of them ------------------------------------------------------------------------------ */

/* The thread's id as the process sees it. */
static bool find_nspid(const struct reading *r, pid_t tid, pid_t *out)
{
	_cleanup_(closep) int folder = -1, fd = -1;
	struct thread_status status;

	*out = tid;
	if (!r->has_own_pids)
		return true;
	folder = thread_folder_open(r->p->door, tid);
	fd = folder < 0 ? -1 : thread_status_open(folder);
	if (fd < 0 || thread_status_read(fd, &status) < 0)
		return false;
	*out = status.nspid;
	return true;
}

static int begin(struct reading *r, const struct pids *tids)
{
	r->subjects = calloc(tids->len, sizeof(*r->subjects));
	r->p->threads = calloc(tids->len, sizeof(*r->p->threads));
	if (!r->subjects || !r->p->threads)
		return -ENOMEM;
	for (size_t i = 0; i < tids->len; i++) {
		struct subject *s = &r->subjects[r->count];

		if (!find_nspid(r, tids->items[i], &s->nspid))
			continue; /* it has ended */
		s->thread = &r->p->threads[r->count++];
		*s->thread = (struct inspect_thread){ .tid = tids->items[i],
						      .walked = { .tid = tids->items[i],
								  .nspid = s->nspid,
								  .is_first = tids->items[i] ==
									      r->p->pid },
						      .fd = -1,
						      .syscall = SYSCALL_NONE,
						      .wait_ns = -1,
						      .pause_ns = -1,
						      .status = UNWIND_OUTSIDE };
	}
	r->p->thread_count = r->count;
	if (!r->count)
		return err_set(-ESRCH, "pid %d: no such process", r->p->pid);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* The thread with that id in its own PID namespace. */
static struct subject *find_subject(struct reading *r, pid_t nspid)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->subjects[i].nspid == nspid)
			return &r->subjects[i];
	return NULL;
}

static int assign_tstates(struct reading *r)
{
	struct tstates list = { 0 };
	pid_t *nspids = calloc(r->count ? r->count : 1, sizeof(*nspids));
	int e;

	if (!nspids)
		return -ENOMEM;
	for (size_t i = 0; i < r->count; i++)
		nspids[i] = r->subjects[i].nspid;
	qsort(nspids, r->count, sizeof(*nspids), by_number);
	e = tstates_list(&r->p->memory, nspids, r->count, &list);
	for (size_t i = 0; i < list.len && e >= 0; i++) {
		const struct tstate *t = &list.items[i];
		struct subject *s = t->nspid ? find_subject(r, t->nspid) : NULL;

		r->may_lend |= !s || s->thread->tstate;
		if (!s)
			continue;
		s->thread->walked.pointer = t->pointer;
		s->thread->pointer = t->pointer;
		s->thread->tstate = t->address;
		s->thread->interp = t->interp;
	}
	for (size_t i = 0; i < r->count && e >= 0 && !r->may_lend; i++)
		if (r->subjects[i].thread->tstate)
			walker_expect(&r->p->memory, r->subjects[i].thread->tid,
				      r->subjects[i].thread->tstate);
	vec_release(&list);
	free(nspids);
	return e == -ENOMEM ? e : 0; /* what cannot be read has no threads */
}

/* The threads there are, as subjects. */
static int list_all(struct reading *r)
{
	_cleanup_(pids_releasep) struct pids tids = VEC_INIT;
	pid_t nspid = r->p->door;
	int e = proc_threads(r->p->pid, &tids);

	if (e < 0)
		return err_wrap(e, "pid %d", r->p->pid);
	if (proc_nspid(r->p->door, &nspid) < 0)
		err_clear(); /* it has none, on a kernel without namespaces */
	r->has_own_pids = nspid != r->p->door;
	if (tids.len > THREADS_MAX)
		tids.len = THREADS_MAX;
	return begin(r, &tids);
}

static int read_left(struct reading *r)
{
	size_t done = 0;
	int e;

	for (size_t i = 0; i < r->count; i++)
		done += r->subjects[i].is_done;
	if (done == r->count)
		return 0;
	e = assign_tstates(r);
	return e < 0 ? e : read_all(r);
}

int inspect_threads_read(struct inspector *in, struct inspect_process *p)
{
	struct reading r = { .in = in,
			     .p = p,
			     .threading = { .read = pages_read,
					    .runtime = p->memory.runtime,
					    .off = p->memory.off } };
	int e;

	pages_init(&r.names, window_read,
		   &p->window); /* outside of any window: what is there now */
	r.threading.arg = &r.names;
	if ((e = list_all(&r)) >= 0 && (e = look_at_many(&r)) >= 0)
		e = read_left(&r);
	pages_release(&r.names);
	vec_release(&r.stacks);
	free(r.subjects);
	return e;
}

int inspect_threads_list(struct inspect_process *p)
{
	struct reading r = { .p = p };
	int e;

	inspect_threads_free(p->threads, p->thread_count);
	p->threads = NULL;
	p->thread_count = 0;
	e = list_all(&r);
	if (e >= 0)
		e = assign_tstates(&r);
	free(r.subjects);
	return e;
}

void inspect_threads_free(struct inspect_thread *threads, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(threads[i].name);
		free(threads[i].handles);
		free(threads[i].file);
		stack_free(threads[i].frames, threads[i].frame_count);
	}
	free(threads);
}
