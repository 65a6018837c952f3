/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "collect/looker.h"
#include "target/offsets.h"
#include "target/proc.h"

#define NS_PER_MS 1000000ULL
#define RECHECK_MIN_NS 5000000ULL     /* a process that has just begun may still map Python */
#define RECHECK_MAX_NS 60000000000ULL /* one that never had any may load it some day */
#define ASKED_SLOTS 4096              /* power of two */
#define SWEEP_ANSWERS 1024            /* at most so many rows may be of processes that are gone */
#define YOUNG_FIRST_NS 1000000        /* until the second look at a new program, then doubled: */
#define YOUNG_LOOKS 11                /* the last one 1 s after it began: it may wait for a CPU */
#define YOUNG_STARTS 64               /* but as soon as that, so often, if Python starts in it */
#define YOUNG_MAX 256

/* A process in which no Python was seen to run. Lossy: forgetting means asking sooner. */
struct asked_slot {
	uint64_t process;  /* identity */
	uint64_t first_ns; /* when it was looked at first; or since its Python is there, and not
			      ready */
	uint64_t last_ns;  /* when it was looked at last */
	bool is_starting;
	bool is_hanging; /* the last look at it has not come back */
};

/* A process that has just begun a program new to us. */
struct young {
	struct who_event who;
	uint64_t next_ns; /* when it is looked at again */
	unsigned int looks, starts;
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
	struct looker *looker;
	VEC(struct interpreter) interpreters; /* the first of each layout describes it */
	VEC(struct py_offsets) layouts;       /* by layout index */
	VEC(struct task_record) tasks;        /* by pid */
	VEC(uint64_t) alive;                  /* identities at the last sweep, ascending */
	uint32_t answers;                     /* since then */
	struct pids members;                  /* of the cgroup that is followed, ascending */
	VEC(struct young) young;
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
	r = looker_new(&d->looker);
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
	vec_release(&d->young);
	looker_free(d->looker);
	free(d);
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

/* look_ns: when a look began that saw none, or (is_starting) saw one that was not ready. */
static struct asked_slot *note_nothing(struct discovery *d, uint64_t process, uint64_t look_ns,
				       bool is_starting)
{
	struct asked_slot *slot = &d->asked[process & (ASKED_SLOTS - 1)];

	if (slot->process != process || is_starting != slot->is_starting)
		*slot = (struct asked_slot){ .process = process,
					     .first_ns = look_ns,
					     .is_starting = is_starting };
	slot->last_ns = look_ns;
	return slot;
}

bool discovery_saw_nothing(const struct discovery *d, uint64_t process, uint64_t at_ns)
{
	const struct asked_slot *slot = &d->asked[process & (ASKED_SLOTS - 1)];

	return slot->process == process && slot->last_ns > at_ns;
}

#define ANY_PROGRAM ~0U /* an exec_id that no program has: whatever runs is asked about */

static int add_row_without_python(struct discovery *d, const struct task_record *task,
				  uint32_t exec_id, uint64_t recheck_ns)
{
	struct proc_row row = { .start_ns = task->start_ns,
				.exec_id = exec_id,
				.layout = LAYOUT_NONE,
				.is_target = 1,
				.recheck_ns = recheck_ns };

	return session_add_process(d->session, task->pid, &row);
}

/*
 * A process that could not be looked at in time: of a slow machine, or for good. Its row is that of
 * no program, so that its ticks ask on; while the look has not come back that is all.
 */
static int add_unseen(struct discovery *d, const struct task_record *task, bool is_hanging)
{
	struct asked_slot *slot = &d->asked[task->process & (ASKED_SLOTS - 1)];

	if (is_hanging && slot->process != task->process)
		*slot = (struct asked_slot){ .process = task->process, .first_ns = monotonic_ns() };
	if (slot->process == task->process)
		slot->is_hanging = is_hanging;
	return add_row_without_python(d, task, ANY_PROGRAM, 0);
}

static bool is_unseen(int r)
{
	return r == -ETIMEDOUT || r == -EBUSY;
}

/*
 * A process without Python. It is asked about again after as long as it has been known, so that one
 * that still loads its interpreter is found soon and others cost little.
 */
static int add_other(struct discovery *d, const struct task_record *task,
		     const struct sighting *seen)
{
	struct asked_slot *slot = note_nothing(d, task->process, seen->look_ns, seen->r == -EAGAIN);
	uint64_t now = monotonic_ns(), wait = now - slot->first_ns;

	if (wait < RECHECK_MIN_NS)
		wait = RECHECK_MIN_NS;
	if (wait > RECHECK_MAX_NS)
		wait = RECHECK_MAX_NS;
	return add_row_without_python(d, task, task->exec_id, now + wait);
}

/* Has it begun no other program since? */
static bool is_still(struct discovery *d, const struct task_record *task)
{
	struct task_record now;

	return !session_find_task(d->session, task->pid, &now) && now.process == task->process;
}

/*
 * A program that is not Python, as far as was seen, or one that has or loads it: then how it is
 * found from where the program begins. What is Python stays so. What was seen in the process is
 * only said of the program that it ran then, if it still runs that.
 */
static void mark_program(struct discovery *d, const struct sighting *seen)
{
	const struct task_record *task = &seen->task;
	struct binary_row row = { .layout = LAYOUT_NONE }, before;
	bool is_known = session_find_binary(d->session, &task->exe, &before) == 0;
	int64_t distance = 0;
	int layout, lead;

	if (!task->exe.inode || (is_known && (seen->r < 0 || before.from_start)))
		return;
	if (seen->r >= 0) {
		layout = add_interpreter(d, &seen->runtime);
		lead = looker_find_lead(d->looker, task, &seen->runtime, &distance);
		/* Without a lead the next process will be asked about. */
		if (layout < 0 || is_unseen(lead) || lead == -ENOMEM || lead == -ESRCH ||
		    (lead < 0 && is_known && before.layout != LAYOUT_NONE))
			return;
		row.from_start = distance;
		row.layout = lead > 0 ? (uint32_t)layout : LAYOUT_UNSURE;
		row.interpreter = layout;
		row.text_to_runtime = lead > 0 ? seen->runtime.text_to_runtime : 0;
	}
	if (is_still(d, task))
		session_add_binary(d->session, &task->exe, &row);
}

/* A process in which a Python was found. */
static int add_python(struct discovery *d, const struct sighting *seen)
{
	const struct py_runtime *rt = &seen->runtime;
	const struct task_record *task = &seen->task;
	int r;

	if (!rt->is_initialised)
		note_nothing(d, task->process, rt->seen_ns, true);
	r = add_process(d, rt, task->pid, task->start_ns, task->exec_id);
	if (r >= 0)
		mark_program(d, seen);
	return r;
}

/* The interpreter of a process the user named, or why there is none. task: NULL, if it was gone. */
static int find_target(struct discovery *d, pid_t pid, const struct task_record *task,
		       struct sighting *out)
{
	struct proc_stat stat;
	int r = proc_stat(pid, &stat);

	if (r == -ESRCH || (!r && !task))
		return err_set(-ESRCH, "pid %d: no such process", pid);
	if (r < 0)
		return r;
	if (stat.is_kernel_thread)
		return err_set(-ENOENT, "pid %d: a kernel thread (%s)", pid, stat.comm);
	if (stat.is_zombie)
		return err_set(-ENOENT, "pid %d: has ended already (%s is a zombie)", pid,
			       stat.comm);
	r = looker_find(d->looker, task, LOOK_PATIENT_NS, out);
	return r == -ESRCH ? err_set(r, "pid %d: no such process", pid)
	       : r < 0     ? err_wrap(r, "pid %d", pid)
			   : 0;
}

/*
 * The task is looked up before its runtime: should it exec in between, the sampler sees from the
 * row's exec_id that the runtime is another program's.
 */
int discovery_add_target(struct discovery *d, pid_t pid)
{
	struct task_record task;
	const struct task_record *found;
	struct sighting seen;
	int r = list_tasks(d);

	if (r < 0)
		return r;
	found = find_task(d, pid);
	if (found)
		task = *found;
	r = find_target(d, pid, found ? &task : NULL, &seen);
	return r < 0 ? r : add_python(d, &seen);
}

/* Where its files have other numbers in the kernel than for stat() this helps nothing. */
static int add_program_file(struct discovery *d, const char *name)
{
	struct command_runtime found;
	struct binary_key key;
	struct binary_row row;
	int r = looker_command(d->looker, name, &found), layout;

	if (r < 0) {
		err_clear(); /* it is looked at when it runs */
		return r == -ENOMEM ? r : 0;
	}
	layout = add_interpreter(d, &found.runtime);
	if (layout < 0)
		return layout;
	key = (struct binary_key){ .inode = found.inode, .dev = found.dev };
	row = (struct binary_row){ .from_start = found.from_start, .interpreter = layout };
	row.layout = found.is_library ? LAYOUT_UNSURE : (uint32_t)layout;
	if (found.from_start && (r = session_add_binary(d->session, &key, &row)) < 0)
		return r;
	key = (struct binary_key){ .inode = found.runtime.text_inode,
				   .dev = found.runtime.text_dev };
	return add_binary(d, &found.runtime, layout, &key);
}

int discovery_add_command(struct discovery *d, pid_t pid, const char *name)
{
	const struct task_record *task;
	struct proc_row row;
	int r = list_tasks(d);

	if (r < 0 || (r = add_program_file(d, name)) < 0)
		return r;
	task = find_task(d, pid);
	if (!task)
		return err_set(-ESRCH, "pid %d: no such process", pid);
	row = (struct proc_row){ .start_ns = task->start_ns,
				 .exec_id = task->exec_id,
				 .layout = LAYOUT_NONE,
				 .is_target = 1,
				 .is_ours = 1 };
	return session_add_process(d->session, pid, &row);
}

/* A process that may run Python (1) or not (0). */
static int add_task(struct discovery *d, const struct task_record *task)
{
	struct sighting seen;
	int r = looker_find(d->looker, task, LOOK_SOON_NS, &seen);

	if (r >= 0) {
		r = add_python(d, &seen);
		return r < 0 ? r : 1;
	}
	if (r == -ENOMEM)
		return r;
	log_debug("%s", err_message(r)); /* one that is none of ours to record */
	return is_unseen(r) ? add_unseen(d, task, r == -ETIMEDOUT) : add_other(d, task, &seen);
}

/* Those that are not among `known`, which is ascending: how many, or a negative errno. */
static int add_new(struct discovery *d, const struct pids *family, const struct pids *known,
		   bool *has_python)
{
	int added = 0, r = list_tasks(d);

	for (size_t i = 0; i < family->len && r >= 0; i++) {
		const struct task_record *task;

		if (pids_has(known, family->items[i]))
			continue;
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
		pids_sort(&family, 0);
		pids_swap(&family, &known);
	} while (r > 0);
	return r < 0 || has_python ? r : discovery_add_target(d, pid);
}

int discovery_add_all(struct discovery *d)
{
	int r = list_tasks(d);

	for (size_t i = 0; i < d->tasks.len && r >= 0; i++)
		r = add_task(d, &d->tasks.items[i]);
	return r < 0 ? r : 0;
}

/*
 * Rows are listed before the members are: who has one and is no member then has left, and not just
 * begun. Not only those that were members before: an answer that was under way while a process left
 * has made its row anew.
 */
int discovery_follow_cgroup(struct discovery *d, const struct cgroup *c)
{
	_cleanup_(pids_releasep) struct pids rows = VEC_INIT, now = VEC_INIT;
	const struct pids *before = &d->members;
	int r = session_list_processes(d->session, &rows);

	if (r < 0 || (r = cgroup_list(c, &now)) < 0)
		return r;
	for (size_t i = 0; i < rows.len; i++)
		if (!pids_has(&now, rows.items[i]))
			session_remove_process(d->session, rows.items[i]);
	if (now.len == before->len &&
	    (!now.len || !memcmp(now.items, before->items, now.len * sizeof(pid_t))))
		return 0;
	r = list_tasks(d);
	for (size_t i = 0; i < now.len && r >= 0; i++) {
		const struct task_record *task = find_task(d, now.items[i]);

		if (task && !pids_has(before, now.items[i]))
			r = add_task(d, task);
	}
	if (r < 0)
		return r;
	pids_swap(&d->members, &now);
	return 0;
}

static struct task_record task_of(const struct who_event *who)
{
	return (struct task_record){ .pid = who->pid,
				     .exec_id = who->exec_id,
				     .start_ns = who->start_ns,
				     .process = who->process,
				     .exe = who->exe,
				     .start_code = who->start_code };
}

/* As add_python(). who: the question that it answers, or NULL. */
static int add_found(struct discovery *d, const struct sighting *seen, const struct who_event *who)
{
	const struct py_runtime *rt = &seen->runtime;
	int r = add_python(d, seen);

	/* The kernel's own numbers for the file: stat() shows others on some file systems. */
	if (r >= 0 && who && who->text.inode && who->vm_start == rt->text_start)
		r = add_binary(d, rt, add_interpreter(d, rt), &who->text);
	if (r >= 0 || r == -ENOMEM)
		return r < 0 ? r : 0;
	log_note("pid %u: %s", seen->task.pid, err_message(r));
	return 0;
}

static struct young *find_young(struct discovery *d, uint64_t process)
{
	for (size_t i = 0; i < d->young.len; i++)
		if (d->young.items[i].who.process == process)
			return &d->young.items[i];
	return NULL;
}

static void remove_young(struct discovery *d, struct young *y)
{
	*y = d->young.items[--d->young.len];
}

/* One that has just begun may load Python yet: it has no row meanwhile, and is looked at again. */
static bool is_to_wait(struct discovery *d, const struct who_event *who, bool is_starting,
		       uint64_t now)
{
	struct young *y = find_young(d, who->process), new = { .who = *who };

	if (!y && (!who->is_exec || d->young.len >= YOUNG_MAX || vec_push(&d->young, new) < 0))
		return false;
	y = find_young(d, who->process);
	if (now < y->next_ns)
		return true; /* a tick asked in between */
	if (is_starting && y->starts++ < YOUNG_STARTS) {
		y->next_ns = now + YOUNG_FIRST_NS;
		return true;
	}
	y->looks++;
	y->next_ns = now + (YOUNG_FIRST_NS << y->looks >> 1);
	if (y->looks < YOUNG_LOOKS)
		return true;
	remove_young(d, y);
	return false;
}

/* Nothing was learnt of it: one that has just begun remains one that has. */
static int postpone(struct discovery *d, const struct who_event *who)
{
	struct young *y = find_young(d, who->process), new = { .who = *who };

	if (!y && who->is_exec && d->young.len < YOUNG_MAX && vec_push(&d->young, new) < 0)
		return -ENOMEM;
	y = find_young(d, who->process);
	if (y)
		y->next_ns = monotonic_ns() + LOOK_SOON_NS;
	return 0;
}

static bool is_hanging(const struct discovery *d, uint64_t process)
{
	const struct asked_slot *slot = &d->asked[process & (ASKED_SLOTS - 1)];

	return slot->process == process && slot->is_hanging;
}

static int look(struct discovery *d, const struct who_event *who)
{
	const struct task_record task = task_of(who);
	struct sighting seen;
	struct young *y;
	int r;

	if (is_hanging(d, who->process))
		return postpone(d, who);
	r = looker_find(d->looker, &task, LOOK_SOON_NS, &seen);
	if (r == -ENOMEM)
		return r;
	if (is_unseen(r)) {
		log_debug("pid %u: %s", who->pid, err_message(r));
		r = add_unseen(d, &task, r == -ETIMEDOUT);
		return r == -ENOMEM ? r : postpone(d, who);
	}
	if (r < 0 && r != -ESRCH && is_to_wait(d, who, r == -EAGAIN, seen.look_ns)) {
		note_nothing(d, who->process, seen.look_ns, r == -EAGAIN);
		return 0;
	}
	y = find_young(d, who->process);
	if (y)
		remove_young(d, y);
	if (r == -ESRCH)
		return 0; /* gone */
	if (r >= 0)
		return add_found(d, &seen, who);
	log_debug("pid %u: %s", who->pid, err_message(r));
	if (r != -EAGAIN)
		mark_program(d, &seen);
	r = add_other(d, &task, &seen);
	return r == -ENOMEM ? r : 0;
}

/*
 * Answered since it was asked: where answers come late, a question comes more than once. A row
 * without Python is no answer to what came after that look: the process may have loaded it then.
 */
static bool is_answered(struct discovery *d, const struct who_event *who)
{
	struct proc_row row;

	return !session_find_process(d->session, who->pid, &row) && row.start_ns == who->start_ns &&
	       row.exec_id == who->exec_id &&
	       (row.layout != LAYOUT_NONE || discovery_saw_nothing(d, who->process, who->ktime_ns));
}

int discovery_answer(struct discovery *d, const struct who_event *who)
{
	int r = ++d->answers > SWEEP_ANSWERS ? discovery_sweep(d) : 0;

	return r < 0 || is_answered(d, who) ? r : look(d, who);
}

int discovery_timeout_ms(const struct discovery *d, int max_ms)
{
	uint64_t now = monotonic_ns(), due = now + (uint64_t)max_ms * NS_PER_MS;

	for (size_t i = 0; i < d->young.len; i++)
		if (d->young.items[i].next_ns < due)
			due = d->young.items[i].next_ns;
	return due > now ? (int)((due - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

/* Looks that were given up, and came back after all. */
static int take_late(struct discovery *d)
{
	struct sighting seen;
	int r = 0;

	while (!r && looker_next(d->looker, &seen)) {
		struct asked_slot *slot = &d->asked[seen.task.process & (ASKED_SLOTS - 1)];

		if (slot->process == seen.task.process)
			slot->is_hanging = false;
		if (seen.r >= 0 && is_still(d, &seen.task))
			r = add_found(d, &seen, NULL);
	}
	return r;
}

int discovery_step(struct discovery *d)
{
	uint64_t now = monotonic_ns();
	int r = take_late(d);

	/* A look may take its entry away, and move the last one there: that one's turn is next
	 * time. */
	for (size_t i = d->young.len; i-- > 0 && !r;) {
		struct who_event who;

		if (i >= d->young.len || d->young.items[i].next_ns > now)
			continue;
		who = d->young.items[i].who;
		r = look(d, &who);
	}
	return r;
}

struct looker *discovery_looker(const struct discovery *d)
{
	return d->looker;
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
