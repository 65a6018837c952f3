/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/discover.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/priority.h"
#include "base/thread.h"
#include "base/vec.h"
#include "collect/finder.h"
#include "collect/looker.h"
#include "target/proc.h"

#define LONG_NS (24 * 3600 * NS_PER_SECOND) /* a call may take as long as it takes */
#define SWEEP_ANSWERS 1024 /* at most so many rows may be of processes that are gone */

struct discovery {
	struct session *session;
	struct questions *questions;
	struct interpreters *interpreters;
	pthread_t thread;
	bool has_thread;

	/* Of who calls us. */
	VEC(uint64_t) alive; /* identities at the last sweep, ascending */
	bool is_following;   /* a cgroup: the first time has been waited for */
	bool has_refused;    /* a question: it has been said */

	/* Of the thread, but for what their headers allow. */
	struct looker *looker;
	struct finder *finder;
	struct pids members;     /* of the cgroup that is followed, ascending */
	uint32_t answers;        /* since rows were swept */
	int r;                   /* of finder_step(), until an answer says so */
	char failure[ERR_BYTES]; /* the first message of the thread that ends it: written once */
};

/* --- tasks ------------------------------------------------------------------------------------ */

struct task_list {
	VEC(struct task_record) tasks; /* by pid */
};

static void task_list_release(struct task_list *l)
{
	vec_release(&l->tasks);
}

static int note_task(const struct task_record *r, void *arg)
{
	struct task_list *l = arg;

	return vec_push(&l->tasks, *r);
}

static int compare_tasks(const void *a, const void *b)
{
	const struct task_record *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int list_tasks(struct discovery *d, struct task_list *out)
{
	int r;

	out->tasks.len = 0;
	r = session_list_tasks(d->session, note_task, out);
	if (!r && out->tasks.len)
		qsort(out->tasks.items, out->tasks.len, sizeof(struct task_record), compare_tasks);
	return r;
}

static const struct task_record *find_task(const struct task_list *l, uint32_t pid)
{
	const struct task_record wanted = { .pid = pid };

	return l->tasks.len ? bsearch(&wanted, l->tasks.items, l->tasks.len,
				      sizeof(struct task_record), compare_tasks)
			    : NULL;
}

/* Rows are listed before tasks: who is not among the tasks then has ended since. */
static int sweep_rows(struct discovery *d, struct task_list *out)
{
	_cleanup_(pids_releasep) struct pids rows = VEC_INIT;
	int r;

	if ((r = session_list_processes(d->session, &rows)) < 0 || (r = list_tasks(d, out)) < 0)
		return r;
	for (size_t i = 0; i < rows.len; i++)
		if (!find_task(out, rows.items[i]))
			session_remove_process(d->session, rows.items[i]);
	return 0;
}

/* --- the thread ------------------------------------------------------------------------------- */

static bool is_still(struct discovery *d, const struct target_id *target)
{
	return !target->process || session_still_runs(d->session, target->pid, target->process);
}

/* Messages are of the thread that sets them. */
static void keep_message(struct discovery *d, int r)
{
	if (!*d->failure)
		snprintf(d->failure, sizeof(d->failure), "%s", err_message(r));
}

static void *answer_questions(void *arg)
{
	struct discovery *d = arg;
	struct priority priority = { .is_inherited = true };

	while (!questions_has_ended(d->questions)) {
		struct question *q = questions_next(d->questions, finder_due_ns(d->finder));
		int r;

		priority_keep(&priority, monotonic_ns());
		if (q) {
			q->r = q->look(q, d->looker);
			if (q->r >= 0 && !is_still(d, &q->target))
				q->r = -ESRCH;
			if (q->r == -ENOMEM)
				keep_message(d, q->r);
			questions_answer(d->questions, q);
		}
		r = finder_step(d->finder);
		if (r < 0) {
			keep_message(d, r);
			__atomic_store_n(&d->r, r, __ATOMIC_RELEASE);
		}
	}
	return NULL;
}

int discovery_new(struct session *session, struct discovery **out)
{
	_cleanup_(discovery_freep) struct discovery *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->session = session;
	if ((r = questions_new(&d->questions)) < 0 ||
	    (r = interpreters_new(&d->interpreters)) < 0 || (r = looker_new(&d->looker)) < 0 ||
	    (r = finder_new(session, d->looker, d->interpreters, &d->finder)) < 0)
		return r;
	r = thread_start_or_say(answer_questions, d, &d->thread);
	if (r < 0)
		return r;
	d->has_thread = true;
	*out = take_ptr(d);
	return 0;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	if (d->has_thread) {
		questions_end(d->questions);
		pthread_join(d->thread, NULL);
	}
	finder_free(d->finder);
	looker_free(d->looker);
	interpreters_free(d->interpreters);
	questions_free(d->questions);
	vec_release(&d->members);
	vec_release(&d->alive);
	free(d);
}

int discovery_ask(struct discovery *d, struct question *q)
{
	int r = questions_ask(d->questions, q);

	if (r == -EAGAIN && !d->has_refused) {
		d->has_refused = true;
		log_warning("too many new processes to examine in time: some processes and names "
			    "will appear late");
	}
	return r;
}

int discovery_step(struct discovery *d)
{
	struct question *q;
	int taken = 0, r = __atomic_load_n(&d->r, __ATOMIC_ACQUIRE);

	if (r < 0)
		return err_set(r, "%s", d->failure);
	while (r >= 0 && (q = questions_take(d->questions))) {
		r = q->take(q);
		if (r == -ENOMEM && q->r == r)
			err_set(r, "%s", d->failure);
		q->free(q);
		taken++;
	}
	return r < 0 ? r : taken;
}

void discovery_wait(struct discovery *d, uint64_t ns)
{
	questions_wait(d->questions, ns);
}

/* --- what is to be done by the thread --------------------------------------------------------- */

struct call {
	struct question question;
	struct discovery *discovery;
	int (*run)(struct discovery *d, const struct call *c);
	pid_t pid;
	const char *name;
	const struct cgroup *cgroup;
	struct who_event who;
	char *text; /* owned: the message of a negative result */
};

static int call_look(struct question *q, struct looker *l)
{
	struct call *c = (struct call *)q;
	int r = c->run(c->discovery, c);

	(void)l;
	if (r < 0)
		c->text = strdup(err_message(r));
	return r;
}

static int call_take(struct question *q)
{
	const struct call *c = (const struct call *)q;

	if (q->r >= 0)
		return 0;
	return c->text ? err_set(q->r, "%s", c->text) : -ENOMEM;
}

static void call_free(struct question *q)
{
	free(((struct call *)q)->text);
	free(q);
}

static int call_ask(struct discovery *d, const struct call *call)
{
	struct call *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = *call;
	c->discovery = d;
	c->question = (struct question){ .look = call_look, .take = call_take, .free = call_free };
	return discovery_ask(d, &c->question);
}

/* Before anything is recorded: nobody else is waited for. */
static int call_wait(struct discovery *d, const struct call *call)
{
	int r = call_ask(d, call);

	if (r < 0)
		return r;
	discovery_wait(d, LONG_NS);
	r = discovery_step(d);
	return r < 0 ? r : 0;
}

/* --- processes that the user named ------------------------------------------------------------ */

/*
 * The task is looked up before its runtime: should it exec in between, the sampler sees from the
 * row's exec_id that the runtime is another program's.
 */
static int add_target(struct discovery *d, const struct call *c)
{
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	int r = list_tasks(d, &tasks);

	return r < 0 ? r : finder_add_target(d->finder, c->pid, find_task(&tasks, c->pid));
}

int discovery_add_target(struct discovery *d, pid_t pid)
{
	const struct call c = { .run = add_target, .pid = pid };

	return call_wait(d, &c);
}

static int add_command(struct discovery *d, const struct call *c)
{
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	const struct task_record *task;
	struct proc_row row;
	int r = list_tasks(d, &tasks);

	if (r < 0 || (r = finder_add_command(d->finder, c->name)) < 0)
		return r;
	task = find_task(&tasks, c->pid);
	if (!task)
		return err_set(-ESRCH, "pid %d: no such process", c->pid);
	row = (struct proc_row){ .start_ns = task->start_ns,
				 .exec_id = task->exec_id,
				 .layout = LAYOUT_NONE,
				 .is_target = 1,
				 .is_ours = 1 };
	return session_add_process(d->session, c->pid, &row);
}

int discovery_add_command(struct discovery *d, pid_t pid, const char *name)
{
	const struct call c = { .run = add_command, .pid = pid, .name = name };

	return call_wait(d, &c);
}

/* Those that are not among `known`, which is ascending: how many, or a negative errno. */
static int add_new(struct discovery *d, const struct pids *family, const struct pids *known,
		   bool *has_python)
{
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	int added = 0, r = list_tasks(d, &tasks);

	for (size_t i = 0; i < family->len && r >= 0; i++) {
		const struct task_record *task;

		if (pids_has(known, family->items[i]))
			continue;
		added++;
		task = find_task(&tasks, family->items[i]);
		r = task ? finder_add_task(d->finder, task) : 0; /* else it has ended */
		*has_python |= r > 0;
	}
	return r < 0 ? r : added;
}

/*
 * Parents first, and again until nobody is new: whoever has a row hands it on to its children, in
 * the kernel, so that only those can be missed that were forked before their parent had one.
 */
static int add_family(struct discovery *d, const struct call *c)
{
	_cleanup_(pids_releasep) struct pids known = VEC_INIT;
	bool has_python = false;
	int r;

	do {
		_cleanup_(pids_releasep) struct pids family = VEC_INIT;

		r = vec_push(&family, c->pid);
		if (!r)
			r = proc_descendants(c->pid, &family);
		if (r != -ENOMEM)
			r = add_new(d, &family, &known, &has_python);
		pids_sort(&family, 0);
		pids_swap(&family, &known);
	} while (r > 0);
	return r < 0 || has_python ? r : add_target(d, c);
}

int discovery_add_family(struct discovery *d, pid_t pid)
{
	const struct call c = { .run = add_family, .pid = pid };

	return call_wait(d, &c);
}

/* --- all processes, those of a cgroup --------------------------------------------------------- */

static int add_all(struct discovery *d, const struct call *c)
{
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	int r = list_tasks(d, &tasks);

	(void)c;
	for (size_t i = 0; i < tasks.tasks.len && r >= 0; i++)
		r = finder_add_task(d->finder, &tasks.tasks.items[i]);
	return r < 0 ? r : 0;
}

int discovery_add_all(struct discovery *d)
{
	const struct call c = { .run = add_all };

	return call_wait(d, &c);
}

/*
 * Rows are listed before the members are: who has one and is no member then has left, and not just
 * begun. Not only those that were members before: an answer that was under way while a process left
 * has made its row anew.
 */
static int follow_cgroup(struct discovery *d, const struct call *c)
{
	_cleanup_(pids_releasep) struct pids rows = VEC_INIT, now = VEC_INIT;
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	const struct pids *before = &d->members;
	int r = session_list_processes(d->session, &rows);

	if (r < 0 || (r = cgroup_list(c->cgroup, &now)) < 0)
		return r;
	for (size_t i = 0; i < rows.len; i++)
		if (!pids_has(&now, rows.items[i]))
			session_remove_process(d->session, rows.items[i]);
	if (now.len == before->len &&
	    (!now.len || !memcmp(now.items, before->items, now.len * sizeof(pid_t))))
		return 0;
	r = list_tasks(d, &tasks);
	for (size_t i = 0; i < now.len && r >= 0; i++) {
		const struct task_record *task = find_task(&tasks, now.items[i]);

		if (task && !pids_has(before, now.items[i]))
			r = finder_add_task(d->finder, task);
	}
	if (r < 0)
		return r;
	pids_swap(&d->members, &now);
	return 0;
}

int discovery_follow_cgroup(struct discovery *d, const struct cgroup *c)
{
	const struct call call = { .run = follow_cgroup, .cgroup = c };
	int r;

	if (!d->is_following) {
		d->is_following = true;
		return call_wait(d, &call);
	}
	r = call_ask(d, &call);
	return r == -EAGAIN ? 0 : r; /* the next time will do */
}

/* --- while it records ------------------------------------------------------------------------- */

static int answer_who(struct discovery *d, const struct call *c)
{
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	int r = 0;

	if (++d->answers > SWEEP_ANSWERS) {
		d->answers = 0;
		r = sweep_rows(d, &tasks);
	}
	return r < 0 ? r : finder_answer(d->finder, &c->who);
}

int discovery_answer(struct discovery *d, const struct who_event *who)
{
	const struct call c = { .run = answer_who, .who = *who };
	int r = call_ask(d, &c);

	return r == -EAGAIN ? 0 : r; /* the kernel asks again */
}

static int compare_identities(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int discovery_sweep(struct discovery *d)
{
	_cleanup_(task_list_release) struct task_list tasks = { VEC_INIT };
	int r = sweep_rows(d, &tasks);

	if (r < 0)
		return r;
	d->alive.len = 0;
	for (size_t i = 0; i < tasks.tasks.len && !r; i++)
		r = vec_push(&d->alive, tasks.tasks.items[i].process);
	if (!r && d->alive.len)
		qsort(d->alive.items, d->alive.len, sizeof(uint64_t), compare_identities);
	return r;
}

bool discovery_has(const struct discovery *d, uint64_t process)
{
	return d->alive.len && bsearch(&process, d->alive.items, d->alive.len, sizeof(uint64_t),
				       compare_identities);
}

bool discovery_saw_nothing(const struct discovery *d, uint64_t process, uint64_t at_ns)
{
	return finder_saw_nothing(d->finder, process, at_ns);
}

const struct py_offsets *discovery_layout(const struct discovery *d, uint32_t layout)
{
	return interpreters_layout(d->interpreters, layout);
}

void discovery_describe(const struct discovery *d, uint32_t layout, struct interpreter_text *out)
{
	interpreters_describe(d->interpreters, layout, out);
}

struct usage discovery_usage(const struct discovery *d)
{
	return questions_usage(d->questions);
}

uint64_t discovery_refused(const struct discovery *d)
{
	return questions_refused(d->questions) + looker_refused(d->looker) +
	       finder_refused(d->finder);
}
