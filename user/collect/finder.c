/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/finder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "target/proc.h"

#define RECHECK_MIN_NS 5000000ULL     /* a process that has just begun may still map Python */
#define RECHECK_MAX_NS 60000000000ULL /* one that never had any may load it some day */
#define ASKED_SLOTS 4096              /* power of two */
#define YOUNG_FIRST_NS 1000000        /* until the second look at a new program, then doubled: */
#define YOUNG_LOOKS 11                /* the last one 1 s after it began: it may wait for a CPU */
#define YOUNG_HELD 60                 /* then one a second, so often, while it is held up */
#define YOUNG_STARTS 32               /* but as soon as that, so often, if Python starts in it */
#define YOUNG_CPU_NS 10000000 /* or it has run for so long: that is how it knows its Python */
#define YOUNG_MAX 1024        /* the others are looked at when they have run on */
#define OLD_NS NS_PER_SECOND
#define OTHER_FIRST_NS (2 * NS_PER_SECOND)
#define OTHER_LAST_NS (20 * NS_PER_SECOND)
#define OTHERS_MAX 64
#define LATE_NS 50000000ULL /* until it is seen whether a look that was given up came back */

/* A process in which no Python was seen to run. Lossy: forgetting means asking sooner. */
struct asked_slot {
	uint64_t process;  /* identity */
	uint64_t first_ns; /* when it was looked at first; or since its Python is there, and not
			      ready */
	uint64_t last_ns;  /* when it was looked at last */
	bool is_starting;
	bool is_hanging; /* the last look at it has not come back */
};

/* A process with one Python, which may load another one: it is looked at again then, twice. */
struct single {
	struct task_record task;
	struct py_runtime runtime; /* that is read, with a later one as the other */
	uint64_t next_ns;
	bool is_last;
};

/* A process that has just begun a program new to us. */
struct young {
	struct who_event who;
	uint64_t next_ns;      /* when it is looked at again */
	uint64_t first_cpu_ns; /* CPU time of the process when it was looked at first, */
	uint64_t cpu_ns;       /* and last */
	bool is_starting;      /* Python was there then, and not ready */
	unsigned int looks, starts, held;
};

struct finder {
	struct session *session;
	struct looker *looker;
	struct interpreters *interpreters;
	VEC(struct young) young;
	VEC(struct single) singles;
	uint64_t told[ASKED_SLOTS]; /* processes with two Pythons that were told of */
	uint64_t refused;           /* read by any thread */
	pthread_mutex_t lock;       /* of what follows, which other threads read */
	struct asked_slot asked[ASKED_SLOTS];
};

int finder_new(struct session *session, struct looker *looker, struct interpreters *interpreters,
	       struct finder **out)
{
	struct finder *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->session = session;
	f->looker = looker;
	f->interpreters = interpreters;
	pthread_mutex_init(&f->lock, NULL);
	*out = f;
	return 0;
}

void finder_free(struct finder *f)
{
	if (!f)
		return;
	vec_release(&f->young);
	vec_release(&f->singles);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Lets the sampler recognise further processes by the file their code is mapped from. */
static int add_binary(struct finder *f, const struct py_runtime *rt, uint32_t layout,
		      const struct binary_key *key)
{
	struct binary_row row = { 0 };

	session_find_binary(f->session, key, &row); /* keeps from_start */
	row.from_start = row.layout == layout ? row.from_start : 0;
	row.text_to_runtime = rt->text_to_runtime;
	row.layout = layout;
	return session_add_binary(f->session, key, &row);
}

/* The row of a process that runs rt. */
static int add_process(struct finder *f, const struct py_runtime *rt, uint32_t pid,
		       uint64_t start_ns, uint32_t exec_id)
{
	struct binary_key key = { .inode = rt->text_inode, .dev = rt->text_dev };
	struct proc_row row = { .start_ns = start_ns,
				.exec_id = exec_id,
				.runtime = rt->runtime_addr,
				.is_target = 1 };
	int layout = interpreters_add(f->interpreters, f->session, rt), r;

	if (layout < 0)
		return layout;
	row.layout = layout;
	if ((r = add_binary(f, rt, layout, &key)) < 0)
		return r;
	return session_add_process(f->session, pid, &row);
}

static struct asked_slot *asked_slot(struct finder *f, uint64_t process)
{
	return &f->asked[process & (ASKED_SLOTS - 1)];
}

static void set_slot(struct finder *f, struct asked_slot *slot, const struct asked_slot *to)
{
	pthread_mutex_lock(&f->lock);
	*slot = *to;
	pthread_mutex_unlock(&f->lock);
}

/*
 * look_ns: when a look began that saw none, or (is_starting) saw one that was not ready. Returns
 * since when that is so.
 */
static uint64_t note_nothing(struct finder *f, uint64_t process, uint64_t look_ns, bool is_starting)
{
	struct asked_slot *slot = asked_slot(f, process), now = *slot;

	if (now.process != process || is_starting != now.is_starting)
		now = (struct asked_slot){ .process = process,
					   .first_ns = look_ns,
					   .is_starting = is_starting };
	now.last_ns = look_ns;
	set_slot(f, slot, &now);
	return now.first_ns;
}

bool finder_saw_nothing(struct finder *f, uint64_t process, uint64_t at_ns)
{
	const struct asked_slot *slot = asked_slot(f, process);
	bool saw_nothing;

	pthread_mutex_lock(&f->lock);
	saw_nothing = slot->process == process && slot->last_ns > at_ns;
	pthread_mutex_unlock(&f->lock);
	return saw_nothing;
}

/* The row that there is of a program: -ENOENT: none. */
static int find_row(struct finder *f, uint32_t pid, uint64_t start_ns, uint32_t exec_id,
		    struct proc_row *row)
{
	if (session_find_process(f->session, pid, row) < 0 || row->start_ns != start_ns ||
	    row->exec_id != exec_id)
		return -ENOENT;
	return 0;
}

/* None, where the kernel has met its Python since: who looks in the midst of an exec sees none. */
static int add_row_without_python(struct finder *f, const struct task_record *task,
				  uint32_t exec_id, uint64_t recheck_ns)
{
	struct proc_row known, row = { .start_ns = task->start_ns,
				       .exec_id = exec_id,
				       .layout = LAYOUT_NONE,
				       .is_target = 1,
				       .recheck_ns = recheck_ns };

	if (!find_row(f, task->pid, task->start_ns, task->exec_id, &known) &&
	    known.layout != LAYOUT_NONE)
		return 0;
	return session_add_process(f->session, task->pid, &row);
}

/*
 * A process that could not be looked at in time: of a slow machine, or for good. Its row is that of
 * no program, so that its ticks ask on; while the look has not come back that is all.
 */
static int add_unseen(struct finder *f, const struct task_record *task, bool is_hanging)
{
	struct asked_slot *slot = asked_slot(f, task->process), now = *slot;

	if (is_hanging && now.process != task->process)
		now = (struct asked_slot){ .process = task->process, .first_ns = monotonic_ns() };
	if (now.process == task->process)
		now.is_hanging = is_hanging;
	set_slot(f, slot, &now);
	return add_row_without_python(f, task, ANY_PROGRAM, 0);
}

static bool is_still(struct finder *f, const struct task_record *task)
{
	return session_still_runs(f->session, task->pid, task->process);
}

/*
 * A program that is not Python, as far as was seen, or one that has or loads it: then how it is
 * found from where the program begins. What is Python stays so. What was seen in the process is
 * only said of the program that it ran then, if it still runs that.
 */
static void mark_program(struct finder *f, const struct sighting *seen)
{
	const struct task_record *task = &seen->task;
	struct binary_row row = { .layout = LAYOUT_NONE }, before;
	bool is_known = session_find_binary(f->session, &task->exe, &before) == 0;
	int64_t distance = 0;
	int layout, lead;

	if (!task->exe.inode || (is_known && (seen->r < 0 || before.from_start)))
		return;
	if (seen->r >= 0) {
		layout = interpreters_add(f->interpreters, f->session, &seen->runtime);
		lead = looker_find_lead(f->looker, task, &seen->runtime, &distance);
		/* Without a lead the next process will be asked about. */
		if (layout < 0 || look_is_late(lead) || lead == -ENOMEM || lead == -ESRCH ||
		    (lead < 0 && is_known && before.layout != LAYOUT_NONE))
			return;
		row.from_start = distance;
		row.layout = lead > 0 ? (uint32_t)layout : LAYOUT_UNSURE;
		row.interpreter = layout;
		row.text_to_runtime = lead > 0 ? seen->runtime.text_to_runtime : 0;
	}
	if (is_still(f, task))
		session_add_binary(f->session, &task->exe, &row);
}

/*
 * A process without Python. It is asked about again after as long as it has been known, so that one
 * that still loads its interpreter is found soon and others cost little. Others of its program are
 * taken for the same only if this one had the time to load one.
 */
static int add_other(struct finder *f, const struct task_record *task, const struct sighting *seen,
		     bool had_time)
{
	uint64_t now = monotonic_ns();
	uint64_t wait = now - note_nothing(f, task->process, seen->look_ns, seen->r == -EAGAIN);

	if (seen->r != -EAGAIN && (had_time || wait >= OLD_NS))
		mark_program(f, seen);
	if (wait < RECHECK_MIN_NS)
		wait = RECHECK_MIN_NS;
	if (wait > RECHECK_MAX_NS)
		wait = RECHECK_MAX_NS;
	return add_row_without_python(f, task, task->exec_id, now + wait);
}

/* Says once of a process that it has two. */
static void warn_of_two(struct finder *f, const struct task_record *task,
			const struct py_runtime *rt)
{
	uint64_t *told = &f->told[task->process & (ASKED_SLOTS - 1)];
	char text[RUNTIME_TWO_BYTES];

	if (!rt->other_version || *told == task->process)
		return;
	*told = task->process;
	runtime_format_two(rt, text);
	log_warning("pid %u has two Pythons: %s", task->pid, text);
}

static void watch_single(struct finder *f, const struct sighting *seen)
{
	const struct single one = { .task = seen->task,
				    .runtime = seen->runtime,
				    .next_ns = monotonic_ns() + OTHER_FIRST_NS };

	for (size_t i = 0; i < f->singles.len; i++)
		if (f->singles.items[i].task.process == seen->task.process)
			return;
	if (!seen->runtime.other_version && f->singles.len < OTHERS_MAX)
		vec_push(&f->singles, one); /* -ENOMEM: it is not looked at again */
}

/* A process in which a Python was found. */
static int add_python(struct finder *f, const struct sighting *seen)
{
	const struct py_runtime *rt = &seen->runtime;
	const struct task_record *task = &seen->task;
	int r;

	warn_of_two(f, task, rt);
	watch_single(f, seen);
	if (!rt->is_initialised)
		note_nothing(f, task->process, rt->seen_ns, true);
	r = add_process(f, rt, task->pid, task->start_ns, task->exec_id);
	if (r >= 0)
		mark_program(f, seen);
	return r;
}

/* The interpreter of a process the user named, or why there is none. task: NULL, if it was gone. */
static int find_target(struct finder *f, pid_t pid, const struct task_record *task,
		       struct sighting *out)
{
	struct proc_stat stat;
	int r = runtime_check_process(pid, &stat);

	if (r < 0)
		return r;
	if (!task)
		return err_set(-ESRCH, "pid %d: no such process", pid);
	r = looker_find(f->looker, task, LOOK_PATIENT_NS, out);
	return r == -ESRCH ? err_set(r, "pid %d: no such process", pid)
	       : r < 0     ? err_wrap(r, "pid %d", pid)
			   : 0;
}

int finder_add_target(struct finder *f, pid_t pid, const struct task_record *task)
{
	struct sighting seen;
	int r = find_target(f, pid, task, &seen);

	return r < 0 ? r : add_python(f, &seen);
}

/* Where its files have other numbers in the kernel than for stat() this helps nothing. */
int finder_add_command(struct finder *f, const char *name)
{
	struct command_runtime found;
	struct binary_key key;
	struct binary_row row;
	int r = looker_command(f->looker, name, &found), layout;

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		err_clear(); /* it is looked at when it runs */
		return 0;
	}
	layout = interpreters_add(f->interpreters, f->session, &found.runtime);
	if (layout < 0)
		return layout;
	key = (struct binary_key){ .inode = found.inode, .dev = found.dev };
	row = (struct binary_row){ .from_start = found.from_start, .interpreter = layout };
	row.layout = found.is_library ? LAYOUT_UNSURE : (uint32_t)layout;
	if (found.from_start && (r = session_add_binary(f->session, &key, &row)) < 0)
		return r;
	key = (struct binary_key){ .inode = found.runtime.text_inode,
				   .dev = found.runtime.text_dev };
	return add_binary(f, &found.runtime, layout, &key);
}

int finder_add_task(struct finder *f, const struct task_record *task)
{
	struct sighting seen;
	int r = looker_find(f->looker, task, LOOK_SOON_NS, &seen);

	if (r >= 0) {
		r = add_python(f, &seen);
		return r < 0 ? r : 1;
	}
	if (r == -ENOMEM)
		return r;
	log_debug("%s", err_message(r)); /* one that is none of ours to record */
	return look_is_late(r) ? add_unseen(f, task, r == -ETIMEDOUT)
			       : add_other(f, task, &seen, false);
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
static int add_found(struct finder *f, const struct sighting *seen, const struct who_event *who)
{
	const struct py_runtime *rt = &seen->runtime;
	int r = add_python(f, seen);

	/* The kernel's own numbers for the file: stat() shows others on some file systems. */
	if (r >= 0 && who && who->text.inode && who->vm_start == rt->text_start)
		r = add_binary(f, rt, interpreters_add(f->interpreters, f->session, rt),
			       &who->text);
	if (r >= 0 || r == -ENOMEM)
		return r < 0 ? r : 0;
	log_note("pid %u: %s", seen->task.pid, err_message(r));
	return 0;
}

static struct young *find_young(struct finder *f, uint64_t process)
{
	for (size_t i = 0; i < f->young.len; i++)
		if (f->young.items[i].who.process == process)
			return &f->young.items[i];
	return NULL;
}

static bool remove_young(struct finder *f, uint64_t process)
{
	struct young *y = find_young(f, process);

	if (y)
		*y = f->young.items[--f->young.len];
	return y != NULL;
}

/* CPU time of a process, before it executed its program too. 0: it is gone. */
static uint64_t cpu_ns_of(uint32_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid((pid_t)pid, &clock) ? 0 : clock_ns(clock);
}

/* NULL: not one that has just begun, or there are too many. */
static struct young *add_young(struct finder *f, const struct who_event *who, uint64_t cpu_ns)
{
	const struct young new = { .who = *who, .first_cpu_ns = cpu_ns, .cpu_ns = cpu_ns };

	if (!who->is_exec || f->young.len >= YOUNG_MAX || vec_push(&f->young, new) < 0)
		return NULL;
	return &f->young.items[f->young.len - 1];
}

static struct young *find_or_add_young(struct finder *f, const struct who_event *who,
				       uint64_t cpu_ns)
{
	return find_young(f, who->process) ?: add_young(f, who, cpu_ns);
}

/* Returns true if the process is stopped, or waits for a CPU or a disk: it may not have mapped its
 * Python yet. */
static bool is_held_up(uint32_t pid)
{
	struct proc_stat stat;
	bool is_held = proc_stat((pid_t)pid, &stat) >= 0 && stat.state != 'S';

	err_clear();
	return is_held;
}

/* false: it was looked at often enough. */
static bool wait_on(struct young *y, uint64_t now)
{
	bool is_soon = y->is_starting && y->starts < YOUNG_STARTS;

	if (is_soon)
		y->starts++;
	else
		y->looks++;
	y->next_ns = now + (is_soon ? YOUNG_FIRST_NS : YOUNG_FIRST_NS << y->looks >> 1);
	if (is_soon || difference(y->cpu_ns, y->first_cpu_ns) >= YOUNG_CPU_NS)
		return is_soon;
	if (y->looks < YOUNG_LOOKS)
		return true;
	y->looks--;
	return y->held++ < YOUNG_HELD && is_held_up(y->who.pid);
}

/* Then it is as it was when it was looked at: no need to do so again, but for the last time. */
static bool has_rested(const struct young *y)
{
	return y->cpu_ns && cpu_ns_of(y->who.pid) == y->cpu_ns && y->looks + 1 < YOUNG_LOOKS;
}

/*
 * One that has just begun may load Python yet: it has no row meanwhile, and is looked at again. By
 * the time that it has run, where it has: a process may get no CPU for a second. cpu_ns: its CPU
 * time before a look at `now`.
 */
static bool is_to_wait(struct finder *f, const struct who_event *who, bool is_starting,
		       uint64_t now, uint64_t cpu_ns)
{
	struct young *y = find_or_add_young(f, who, cpu_ns);

	if (!y)
		return false;
	y->cpu_ns = cpu_ns;
	y->is_starting = is_starting;
	return now < y->next_ns /* a tick asked in between */ || wait_on(y, now);
}

/* Keeps a process young of which a look told nothing. */
static void postpone(struct finder *f, const struct who_event *who)
{
	struct young *y = find_or_add_young(f, who, cpu_ns_of(who->pid));

	if (!y)
		return;
	y->next_ns = monotonic_ns() + LOOK_SOON_NS;
	y->cpu_ns = 0;
}

static bool is_hanging(struct finder *f, uint64_t process)
{
	const struct asked_slot *slot = asked_slot(f, process);

	return slot->process == process && slot->is_hanging;
}

static int look(struct finder *f, const struct who_event *who)
{
	const struct task_record task = task_of(who);
	uint64_t cpu_ns = cpu_ns_of(who->pid);
	struct sighting seen;
	bool was_young;
	int r;

	if (is_hanging(f, who->process)) {
		postpone(f, who);
		return 0;
	}
	r = looker_find(f->looker, &task, LOOK_SOON_NS, &seen);
	if (r == -ENOMEM)
		return r;
	if (look_is_late(r)) {
		log_debug("pid %u: %s", who->pid, seen.text);
		postpone(f, who);
		r = add_unseen(f, &task, r == -ETIMEDOUT);
		return r == -ENOMEM ? r : 0;
	}
	if (r != -ESRCH && !is_still(f, &task))
		r = -ESRCH;
	if (r < 0 && r != -ESRCH && is_to_wait(f, who, r == -EAGAIN, seen.look_ns, cpu_ns)) {
		note_nothing(f, who->process, seen.look_ns, r == -EAGAIN);
		return 0;
	}
	was_young = remove_young(f, who->process);
	if (r == -ESRCH)
		return 0; /* gone */
	if (r >= 0)
		return add_found(f, &seen, who);
	log_debug("pid %u: %s", who->pid, seen.text);
	if (who->is_exec && !was_young) {
		__atomic_fetch_add(&f->refused, 1, __ATOMIC_RELAXED);
		r = add_unseen(f, &task, false);
	} else {
		r = add_other(f, &task, &seen, was_young);
	}
	return r == -ENOMEM ? r : 0;
}

/*
 * Answered since it was asked: where answers come late, a question comes more than once. A row
 * without Python is no answer to what came after that look: the process may have loaded it then.
 */
static bool is_answered(struct finder *f, const struct who_event *who)
{
	struct proc_row row;

	return !find_row(f, who->pid, who->start_ns, who->exec_id, &row) &&
	       (row.layout != LAYOUT_NONE || finder_saw_nothing(f, who->process, who->ktime_ns));
}

int finder_answer(struct finder *f, const struct who_event *who)
{
	return is_answered(f, who) ? 0 : look(f, who);
}

/* The one whose turn is next; NULL: there is none. */
static struct young *next_young(const struct finder *f)
{
	struct young *next = NULL;

	for (size_t i = 0; i < f->young.len; i++)
		if (!next || f->young.items[i].next_ns < next->next_ns)
			next = &f->young.items[i];
	return next;
}

uint64_t finder_refused(const struct finder *f)
{
	return __atomic_load_n(&f->refused, __ATOMIC_RELAXED);
}

/* The one whose turn is next; NULL: there is none. */
static struct single *next_single(const struct finder *f)
{
	struct single *next = NULL;

	for (size_t i = 0; i < f->singles.len; i++)
		if (!next || f->singles.items[i].next_ns < next->next_ns)
			next = &f->singles.items[i];
	return next;
}

/* A later look may find the other of two first: the row of the process stays. */
static void note_other(struct py_runtime *read, const struct py_runtime *seen)
{
	const bool is_same = seen->runtime_addr == read->runtime_addr;

	read->other_version = is_same ? seen->other_version : seen->version;
	memcpy(read->other_path, is_same ? seen->other_path : seen->path, sizeof(read->other_path));
}

/* Looks whether the one whose turn it is has loaded another Python. -ENOMEM or 0. */
static int look_at_single(struct finder *f)
{
	struct single *next = next_single(f);
	struct sighting seen;
	int r;

	if (!next || next->next_ns > monotonic_ns())
		return 0;
	r = is_still(f, &next->task) ? looker_find(f->looker, &next->task, LOOK_SOON_NS, &seen)
				     : -ESRCH;
	if (r >= 0) {
		note_other(&next->runtime, &seen.runtime);
		warn_of_two(f, &next->task, &next->runtime);
	}
	err_clear();
	if (r < 0 || next->runtime.other_version || next->is_last) {
		*next = f->singles.items[--f->singles.len];
	} else {
		next->next_ns += OTHER_LAST_NS - OTHER_FIRST_NS;
		next->is_last = true;
	}
	return r == -ENOMEM ? r : 0;
}

uint64_t finder_due_ns(const struct finder *f)
{
	uint64_t due = looker_has_late(f->looker) ? monotonic_ns() + LATE_NS : UINT64_MAX;
	const struct young *young = next_young(f);
	const struct single *single = next_single(f);

	if (young && young->next_ns < due)
		due = young->next_ns;
	return single && single->next_ns < due ? single->next_ns : due;
}

/* Looks that were given up, and came back after all. */
static int take_late(struct finder *f)
{
	struct sighting seen;
	int r = 0;

	while (!r && looker_next(f->looker, &seen)) {
		struct asked_slot *slot = asked_slot(f, seen.task.process);

		if (slot->process == seen.task.process)
			slot->is_hanging = false;
		if (seen.r >= 0 && is_still(f, &seen.task))
			r = add_found(f, &seen, NULL);
	}
	return r;
}

int finder_step(struct finder *f)
{
	uint64_t now = monotonic_ns();
	struct young *next;
	struct who_event who;
	int r = take_late(f);

	looker_name_silent(f->looker);
	if (!r)
		r = look_at_single(f);
	next = next_young(f);
	if (r < 0 || !next || next->next_ns > now)
		return r;
	if (has_rested(next)) {
		wait_on(next, now);
		return 0;
	}
	who = next->who; /* the look may take the entry away */
	return look(f, &who);
}
