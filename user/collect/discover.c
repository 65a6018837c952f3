/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "target/offsets.h"
#include "target/proc.h"
#include "target/program.h"
#include "target/runtime.h"

#define NS_PER_SECOND 1000000000ULL
#define RECHECK_MIN_NS 5000000ULL     /* a process that has just begun may still map Python */
#define RECHECK_MAX_NS 60000000000ULL /* one that never had any may load it some day */
#define ASKED_SLOTS 4096              /* power of two */
#define SWEEP_ANSWERS 1024            /* at most so many rows may be of processes that are gone */

/* Since when a process without Python is asked about. Lossy: forgetting means asking sooner. */
struct asked_slot {
	uint64_t process;
	uint64_t first_ns;
};

/* One interpreter file. */
struct interpreter {
	uint32_t layout;
	char version[VERSION_TEXT_BYTES];
	const char *implementation;
	char *path; /* owned */
};

struct discovery {
	struct session *session;
	struct runtime_cache *runtimes;
	VEC(struct interpreter) interpreters; /* the first of each layout describes it */
	VEC(struct py_offsets) layouts;       /* by layout index */
	VEC(struct task_record) tasks;        /* by pid */
	VEC(uint64_t) alive;                  /* identities at the last sweep, ascending */
	uint32_t answers;                     /* since then */
	struct pids members;                  /* of the cgroup that is followed, ascending */
	size_t found;
	struct asked_slot asked[ASKED_SLOTS];
};

int discovery_new(struct session *session, struct discovery **out)
{
	_cleanup_(discovery_freep) struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->session = session;
	r = runtime_cache_new(&d->runtimes);
	if (r < 0)
		return r;
	*out = take_ptr(d);
	return 0;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->interpreters.len; i++)
		free(d->interpreters.items[i].path);
	vec_release(&d->interpreters);
	vec_release(&d->layouts);
	vec_release(&d->tasks);
	vec_release(&d->alive);
	vec_release(&d->members);
	runtime_cache_free(d->runtimes);
	free(d);
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_SECOND + t.tv_nsec;
}

static const char *implementation_of(const struct py_offsets *off)
{
	if (off->is_best_effort)
		return off->is_free_threaded ? "CPython free-threaded, best effort"
					     : "CPython, best effort";
	return off->is_free_threaded ? "CPython free-threaded" : "CPython";
}

/* Layout index of an interpreter, registered with the kernel side at first sight. */
static int add_interpreter(struct discovery *d, const struct py_runtime *rt)
{
	struct interpreter i = { .implementation = implementation_of(&rt->offsets) };
	int layout = session_add_layout(d->session, &rt->offsets), r;

	if (layout < 0)
		return layout;
	for (size_t n = 0; n < d->interpreters.len; n++)
		if (d->interpreters.items[n].layout == (uint32_t)layout)
			return layout;
	i.layout = layout;
	version_format(rt->version, i.version);
	i.path = strdup(rt->path);
	if (!i.path)
		return -ENOMEM;
	if ((r = vec_reserve(&d->layouts, 1)) < 0 || (r = vec_push(&d->interpreters, i)) < 0) {
		free(i.path);
		return r;
	}
	vec_push(&d->layouts, rt->offsets);
	if (rt->offsets.is_best_effort)
		log_warning("%s: CPython %s is not known to this pyebpf: read as it describes "
			    "itself, best effort",
			    i.path, i.version);
	return layout;
}

/* Lets the sampler recognise further processes by the file their code is mapped from. */
static int add_binary(struct discovery *d, const struct py_runtime *rt, uint32_t layout,
		      const struct binary_key *key)
{
	struct binary_row row = { 0 };

	session_find_binary(d->session, key, &row); /* keeps from_start */
	row.from_start = row.layout == layout ? row.from_start : 0;
	row.text_to_runtime = rt->text_to_runtime;
	row.layout = layout;
	return session_add_binary(d->session, key, &row);
}

/* The row of a process that runs rt. */
static int add_process(struct discovery *d, const struct py_runtime *rt, uint32_t pid,
		       uint64_t start_ns, uint32_t exec_id)
{
	struct binary_key key = { .inode = rt->text_inode, .dev = rt->text_dev };
	struct proc_row row = { .start_ns = start_ns,
				.exec_id = exec_id,
				.runtime = rt->runtime_addr,
				.is_target = 1 };
	int layout = add_interpreter(d, rt), r;

	if (layout < 0)
		return layout;
	row.layout = layout;
	if ((r = add_binary(d, rt, layout, &key)) < 0)
		return r;
	d->found++;
	return session_add_process(d->session, pid, &row);
}

static int note_task(const struct task_record *r, void *arg)
{
	struct discovery *d = arg;

	return vec_push(&d->tasks, *r);
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task_record *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int list_tasks(struct discovery *d)
{
	int r;

	d->tasks.len = 0;
	r = session_list_tasks(d->session, note_task, d);
	if (!r && d->tasks.len)
		qsort(d->tasks.items, d->tasks.len, sizeof(struct task_record), compare_tasks);
	return r;
}

static const struct task_record *find_task(const struct discovery *d, uint32_t pid)
{
	const struct task_record wanted = { .pid = pid };

	return d->tasks.len ? bsearch(&wanted, d->tasks.items, d->tasks.len,
				      sizeof(struct task_record), compare_tasks)
			    : NULL;
}

static int compare_identities(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Rows are listed before tasks: who is not among the tasks then has ended since. */
int discovery_sweep(struct discovery *d)
{
	_cleanup_(pids_releasep) struct pids rows = VEC_INIT;
	int r;

	d->answers = 0;
	if ((r = session_list_processes(d->session, &rows)) < 0 || (r = list_tasks(d)) < 0)
		return r;
	for (size_t i = 0; i < rows.len; i++)
		if (!find_task(d, rows.items[i]))
			session_remove_process(d->session, rows.items[i]);
	d->alive.len = 0;
	for (size_t i = 0; i < d->tasks.len && !r; i++)
		r = vec_push(&d->alive, d->tasks.items[i].process);
	if (!r && d->alive.len)
		qsort(d->alive.items, d->alive.len, sizeof(uint64_t), compare_identities);
	return r;
}

bool discovery_has(const struct discovery *d, uint64_t process)
{
	return d->alive.len && bsearch(&process, d->alive.items, d->alive.len, sizeof(uint64_t),
				       compare_identities);
}

/*
 * A process without Python, or not looked at yet. It is asked about again after as long as it has
 * been known, so that one that still loads its interpreter is found soon and others cost little.
 * is_starting: it has one, which is not ready.
 */
static int add_other(struct discovery *d, uint32_t pid, uint64_t start_ns, uint32_t exec_id,
		     bool is_starting)
{
	uint64_t process = hash_combine(hash_combine(start_ns, exec_id), pid), now = monotonic_ns();
	struct asked_slot *slot = &d->asked[process & (ASKED_SLOTS - 1)];
	struct proc_row row = {
		.start_ns = start_ns, .exec_id = exec_id, .layout = LAYOUT_NONE, .is_target = 1
	};
	uint64_t wait;

	if (slot->process != process || is_starting)
		*slot = (struct asked_slot){ process, now };
	wait = now - slot->first_ns;
	if (wait < RECHECK_MIN_NS)
		wait = RECHECK_MIN_NS;
	if (wait > RECHECK_MAX_NS)
		wait = RECHECK_MAX_NS;
	row.recheck_ns = now + wait;
	return session_add_process(d->session, pid, &row);
}

/*
 * A program that is not Python, as far as was seen, or one that has or loads it: then how it is
 * found from where the program begins. What is Python stays so.
 */
static void mark_program(struct discovery *d, const struct task_record *task,
			 const struct py_runtime *rt)
{
	struct binary_row row = { .layout = LAYOUT_NONE }, before;
	bool is_known = session_find_binary(d->session, &task->exe, &before) == 0;
	int64_t distance = 0;
	int layout, r;

	if (!task->exe.inode || (is_known && (!rt || before.from_start)))
		return;
	if (rt) {
		row.layout = LAYOUT_UNSURE;
		r = program_find_lead(task->pid, task->start_code, rt, &distance);
		if (r < 0)
			err_clear(); /* the next process will be asked about */
		if (r == -ESRCH || (r < 0 && is_known && before.layout != LAYOUT_NONE))
			return;
		row.from_start = distance;
		layout = r > 0 ? add_interpreter(d, rt) : -ENOENT;
		if (layout >= 0) {
			row.layout = layout;
			row.text_to_runtime = rt->text_to_runtime;
		}
	}
	session_add_binary(d->session, &task->exe, &row);
}

/* The interpreter of a process the user named, or why there is none. */
static int find_target(struct discovery *d, pid_t pid, struct py_runtime *rt)
{
	struct proc_stat stat;
	int r = proc_stat(pid, &stat);

	if (r == -ESRCH)
		return err_set(r, "pid %d: no such process", pid);
	if (r < 0)
		return r;
	if (stat.is_kernel_thread)
		return err_set(-ENOENT, "pid %d: a kernel thread (%s)", pid, stat.comm);
	if (stat.is_zombie)
		return err_set(-ENOENT, "pid %d: has ended already (%s is a zombie)", pid,
			       stat.comm);
	r = runtime_find(d->runtimes, pid, rt);
	return r == -ESRCH ? err_set(r, "pid %d: no such process", pid)
	       : r < 0     ? err_wrap(r, "pid %d", pid)
			   : 0;
}

/*
 * The task is looked up before its runtime: should it exec in between, the sampler sees from the
 * row's exec_id that the runtime is another program's.
 */
int discovery_add_target(struct discovery *d, pid_t pid, bool wait_for_exec)
{
	const struct task_record *task;
	struct py_runtime rt;
	int r = list_tasks(d);

	if (r < 0)
		return r;
	task = find_task(d, pid);
	if (wait_for_exec && task) {
		struct proc_row row = { .start_ns = task->start_ns,
					.exec_id = ~0U, /* whatever it execs is looked at */
					.layout = LAYOUT_NONE,
					.is_target = 1 };

		return session_add_process(d->session, pid, &row);
	}
	if ((r = find_target(d, pid, &rt)) < 0)
		return r;
	if (!task)
		return err_set(-ESRCH, "pid %d: no such process", pid);
	r = add_process(d, &rt, pid, task->start_ns, task->exec_id);
	mark_program(d, task, &rt);
	return r;
}

/* A process that may run Python (1) or not (0). */
static int add_task(struct discovery *d, const struct task_record *task)
{
	struct py_runtime rt;
	int r = runtime_find(d->runtimes, task->pid, &rt);

	if (r >= 0) {
		r = add_process(d, &rt, task->pid, task->start_ns, task->exec_id);
		mark_program(d, task, &rt);
		return r < 0 ? r : 1;
	}
	if (r == -ENOMEM)
		return r;
	log_debug("%s", err_message(r)); /* one that is none of ours to record */
	return add_other(d, task->pid, task->start_ns, task->exec_id, r == -EAGAIN);
}

static bool pids_has(const struct pids *list, pid_t pid)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->items[i] == pid)
			return true;
	return false;
}

/* Those of them that are no targets yet: how many, or a negative errno. */
static int add_new(struct discovery *d, const struct pids *family, struct pids *known,
		   bool *has_python)
{
	int added = 0, r = list_tasks(d);

	for (size_t i = 0; i < family->len && r >= 0; i++) {
		const struct task_record *task;

		if (pids_has(known, family->items[i]))
			continue;
		if ((r = vec_push(known, family->items[i])) < 0)
			break;
		added++;
		task = find_task(d, family->items[i]);
		r = task ? add_task(d, task) : 0; /* else it has ended */
		*has_python |= r > 0;
	}
	return r < 0 ? r : added;
}

/*
 * Parents first, and again until nobody is new: whoever has a row hands it on to its children, in
 * the kernel, so that only those can be missed that were forked before their parent had one.
 */
int discovery_add_family(struct discovery *d, pid_t pid)
{
	_cleanup_(pids_releasep) struct pids known = VEC_INIT;
	bool has_python = false;
	int r;

	do {
		_cleanup_(pids_releasep) struct pids family = VEC_INIT;

		r = vec_push(&family, pid);
		if (!r)
			r = proc_descendants(pid, &family);
		if (r != -ENOMEM)
			r = add_new(d, &family, &known, &has_python);
	} while (r > 0);
	return r < 0 || has_python ? r : discovery_add_target(d, pid, false);
}

int discovery_add_all(struct discovery *d)
{
	int r = list_tasks(d);

	for (size_t i = 0; i < d->tasks.len && r >= 0; i++)
		r = add_task(d, &d->tasks.items[i]);
	return r < 0 ? r : 0;
}

int discovery_follow_cgroup(struct discovery *d, const struct cgroup *c)
{
	_cleanup_(pids_releasep) struct pids now = VEC_INIT;
	struct pids before = d->members;
	size_t old = 0;
	int r = cgroup_list(c, &now);

	if (r < 0)
		return r;
	if (now.len == before.len &&
	    (!now.len || !memcmp(now.items, before.items, now.len * sizeof(pid_t))))
		return 0;
	r = list_tasks(d);
	for (size_t i = 0; i < now.len && r >= 0; i++) {
		const struct task_record *task;

		for (; old < before.len && before.items[old] < now.items[i]; old++)
			session_remove_process(d->session, before.items[old]);
		if (old < before.len && before.items[old] == now.items[i]) {
			old++;
			continue;
		}
		task = find_task(d, now.items[i]);
		if (task)
			r = add_task(d, task);
	}
	for (; old < before.len && r >= 0; old++)
		session_remove_process(d->session, before.items[old]);
	if (r < 0)
		return r;
	d->members = now;
	now = before;
	return 0;
}

int discovery_answer(struct discovery *d, const struct who_event *who)
{
	const struct task_record task = { .pid = who->pid,
					  .exec_id = who->exec_id,
					  .start_ns = who->start_ns,
					  .exe = who->exe,
					  .start_code = who->start_code };
	struct py_runtime rt;
	int r = ++d->answers > SWEEP_ANSWERS ? discovery_sweep(d) : 0;

	if (r < 0)
		return r;
	r = runtime_find(d->runtimes, who->pid, &rt);
	if (r == -ENOMEM || r == -ESRCH)
		return r == -ENOMEM ? r : 0; /* 0: gone */
	if (r < 0) {
		log_debug("pid %u: %s", who->pid, err_message(r));
		if (r != -EAGAIN)
			mark_program(d, &task, NULL);
		r = add_other(d, who->pid, who->start_ns, who->exec_id, r == -EAGAIN);
		return r == -ENOMEM ? r : 0;
	}
	r = add_process(d, &rt, who->pid, who->start_ns, who->exec_id);
	mark_program(d, &task, &rt);
	/* The kernel's own numbers for the file: stat() shows others on some file systems. */
	if (r >= 0 && who->text.inode && who->vm_start == rt.text_start)
		r = add_binary(d, &rt, add_interpreter(d, &rt), &who->text);
	if (r < 0 && r != -ENOMEM) {
		log_note("pid %u: %s", who->pid, err_message(r));
		r = 0;
	}
	return r;
}

const struct py_offsets *discovery_layout(const struct discovery *d, uint32_t layout)
{
	return layout < d->layouts.len ? &d->layouts.items[layout] : NULL;
}

void discovery_describe(const struct discovery *d, uint32_t layout, struct interpreter_text *out)
{
	*out = (struct interpreter_text){ "", "", "" };
	for (size_t i = 0; i < d->interpreters.len; i++) {
		const struct interpreter *n = &d->interpreters.items[i];

		if (n->layout == layout)
			*out = (struct interpreter_text){ n->version, n->implementation, n->path };
	}
}

size_t discovery_count(const struct discovery *d)
{
	return d->found;
}
