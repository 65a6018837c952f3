/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/looker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "collect/late_looks.h"
#include "collect/look_budget.h"
#include "target/mem.h"
#include "target/owner.h"
#include "target/proc.h"
#include "target/program.h"
#include "target/runtime_workers.h"
#include "target/thread_context.h"

#define OWNER_SLOTS 1024
#define OWNER_KEPT_NS NS_PER_SECOND /* then it may be another process, or of another user */
#define OWNER_UNKNOWN 1             /* of a process that is gone */

struct looker {
	struct workers *workers;
	struct our_cgroups *ours;
	struct look_budget budget;
	struct late_looks late;
	uint64_t refused; /* read by any thread */
	struct {
		pid_t pid;
		uint64_t id;
		uint64_t at_ns; /* CLOCK_MONOTONIC */
	} owners[OWNER_SLOTS];
};

/* Our cgroup namespace, found once, as that takes its time; looks that hang may outlive others. */
struct our_cgroups {
	int refs;
	struct cgroup_namespace namespace;
};

static void our_cgroups_drop(struct our_cgroups *c)
{
	if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	cgroup_namespace_release(&c->namespace);
	free(c);
}

static struct our_cgroups *our_cgroups_new(void)
{
	struct our_cgroups *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return NULL;
	c->refs = 1;
	r = cgroup_namespace_find(&c->namespace);
	if (r < 0) /* containers that it tells go without */
		log_warning("our cgroup namespace: %s", err_message(r));
	return c;
}

int looker_new(struct looker **out)
{
	_cleanup_(looker_freep) struct looker *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->ours = our_cgroups_new();
	if (!l->ours)
		return -ENOMEM;
	r = runtime_workers_new(&l->workers);
	if (r < 0)
		return r;
	*out = take_ptr(l);
	return 0;
}

void looker_free(struct looker *l)
{
	if (!l)
		return;
	late_looks_name(&l->late, true);
	workers_free(l->workers);
	our_cgroups_drop(l->ours);
	free(l);
}

static void free_work(struct work *w)
{
	free(w);
}

static struct look_target target_of(struct looker *l, pid_t pid)
{
	typeof(&l->owners[0]) slot = &l->owners[(uint32_t)pid % OWNER_SLOTS];
	uint64_t now_ns = monotonic_ns();
	struct owner owner;

	if (slot->pid != pid || now_ns - slot->at_ns >= OWNER_KEPT_NS) {
		if (owner_find(pid, &l->ours->namespace, &owner) < 0)
			owner.id = OWNER_UNKNOWN;
		slot->pid = pid;
		slot->id = owner.id;
		slot->at_ns = now_ns;
	}
	return (struct look_target){ .pid = pid, .owner = slot->id };
}

static bool is_within_budget(struct looker *l, enum look_kind kind, struct look_target target,
			     size_t bytes, uint64_t *cpu_ns)
{
	bool is_first;

	*cpu_ns = look_budget_ask(&l->budget, kind, target, monotonic_ns(), bytes, &is_first);
	if (is_first)
		log_note("pid %d: reading its memory, or that of others of its user or container, "
			 "takes too long: reading it less often",
			 target.pid);
	return *cpu_ns;
}

/* A look that is not begun. */
static int refuse(struct looker *l, struct work *w, const char *why)
{
	__atomic_fetch_add(&l->refused, 1, __ATOMIC_RELAXED);
	w->free(w);
	return err_set(-EBUSY, "%s", why);
}

/* Why a look is not to be begun. NULL: it may, with w->cpu_ns. */
static const char *find_refusal(struct looker *l, enum look_kind kind, struct look_target target,
				size_t bytes, struct work *w)
{
	if (late_looks_has(&l->late, target.pid))
		return "another look at it has not come back";
	if (late_looks_blocked(&l->late, target.owner) >= LOOK_OWNER_BLOCKED_MAX)
		return "too many processes of its user or container do not answer";
	if (!is_within_budget(l, kind, target, bytes, &w->cpu_ns))
		return "looks at it, or at others of its user or container, take too long, or too "
		       "much";
	return NULL;
}

/* workers_run() returned r, and has not begun it. */
static int explain(struct looker *l, struct work *w, int r, bool may_come_yet)
{
	if (r == -EAGAIN && workers_late(l->workers) >= WORKERS_MAX)
		return refuse(l, w, "too many processes whose memory or files do not answer");
	w->free(w);
	return may_come_yet ? err_set(-EBUSY, "start a process: it gets no CPU") : workers_say(r);
}

static const char *command_of(const struct work *w);

/*
 * 0: it is done, and the caller's to free. Else it is no longer his, and there is a message:
 * -ETIMEDOUT: it goes on, looker_next() may have it; -EBUSY, -ENOMEM: not begun. bytes: of memory
 * that it reads, where a target may have much.
 */
static int run_look(struct looker *l, enum look_kind kind, pid_t pid, size_t bytes, struct work *w,
		    uint64_t ns)
{
	bool is_limited = pid && ns <= LOOK_SOON_NS; /* else a user who waits named it */
	struct look_target target =
		pid ? target_of(l, pid) : (struct look_target){ .command = command_of(w) };
	const char *refusal = is_limited ? find_refusal(l, kind, target, bytes, w) : NULL;
	uint64_t begin_ns = monotonic_ns();
	struct look_cost cost = { .bytes = bytes };
	int r;

	if (refusal)
		return refuse(l, w, refusal);
	r = workers_run(l->workers, w, ns);
	cost.ns = monotonic_ns() - begin_ns;
	if (!r) {
		cost.asleep_ns = w->asleep_ns;
		cost.cpu_ns = w->cpu_ns;
	} else if (r == -EINPROGRESS && late_looks_note(&l->late, w, kind, target, is_limited)) {
		cost.asleep_ns = cost.ns; /* CPU time: see next_late() */
	}
	if (is_limited)
		look_budget_spend(&l->budget, kind, target, begin_ns, &cost);
	if (r == -EINPROGRESS)
		return err_set(-ETIMEDOUT, "%s", workers_late_words(w));
	/* A process that got no CPU in that time may get some another time. */
	return r ? explain(l, w, r, is_limited || cost.ns >= ns) : 0;
}

/* Charges a late look's owner with what it took while nobody waited. */
static struct work *next_late(struct looker *l)
{
	struct work *w = workers_next(l->workers);
	struct late_look late;

	if (!w)
		return NULL;
	late_looks_take(&l->late, w, &late);
	if (late.work && late.is_charged)
		look_budget_spend(&l->budget, late.kind, late.target, monotonic_ns(),
				  &(struct look_cost){ .cpu_ns = w->cpu_ns });
	return w;
}

/* --- processes -------------------------------------------------------------------------------- */

struct find {
	struct work work;
	struct sighting seen;
};

static void find_run(struct work *w, void *cache)
{
	struct find *f = (struct find *)w;
	struct sighting *s = &f->seen;

	s->r = runtime_find(cache, s->task.pid, &s->runtime);
	if (s->r < 0)
		snprintf(s->text, sizeof(s->text), "%s", err_message(s->r));
}

int looker_find(struct looker *l, const struct task_record *task, uint64_t ns, struct sighting *out)
{
	struct find *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	*out = (struct sighting){ .task = *task, .look_ns = monotonic_ns() };
	f->work = (struct work){ .run = find_run, .free = free_work };
	f->seen = *out;
	r = run_look(l, LOOK_SEARCH, task->pid, 0, &f->work, ns);
	if (r < 0) {
		out->r = r;
		snprintf(out->text, sizeof(out->text), "%s", err_message(r));
		return r;
	}
	*out = f->seen;
	free(f);
	return out->r < 0 ? err_set(out->r, "%s", out->text) : out->r;
}

bool looker_has_late(const struct looker *l)
{
	return late_looks_has_any(&l->late);
}

void looker_name_silent(struct looker *l)
{
	late_looks_name(&l->late, false);
}

bool looker_next(struct looker *l, struct sighting *out)
{
	struct work *w;
	bool is_find = false;

	while (!is_find && (w = next_late(l))) {
		is_find = w->run == find_run;
		if (is_find)
			*out = ((struct find *)w)->seen;
		w->free(w);
	}
	return is_find;
}

struct command {
	struct work work;
	char name[PATH_MAX];
	int r;
	struct command_runtime found;
};

static const char *command_of(const struct work *w)
{
	return ((const struct command *)w)->name;
}

static void command_run(struct work *w, void *cache)
{
	struct command *c = (struct command *)w;

	c->r = command_find_runtime(cache, c->name, &c->found);
}

int looker_command(struct looker *l, const char *name, struct command_runtime *out)
{
	struct command *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->work = (struct work){ .run = command_run, .free = free_work };
	snprintf(c->name, sizeof(c->name), "%s", name);
	r = run_look(l, LOOK_SEARCH, 0, 0, &c->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	r = c->r;
	*out = c->found;
	free(c);
	return r;
}

struct find_lead {
	struct work work;
	struct task_record task;
	struct py_runtime runtime;
	int r;
	int64_t distance;
};

static void find_lead_run(struct work *w, void *cache)
{
	struct find_lead *f = (struct find_lead *)w;

	(void)cache;
	f->r = program_find_lead(f->task.pid, f->task.start_code, &f->runtime, &f->distance);
	err_clear();
}

int looker_find_lead(struct looker *l, const struct task_record *task, const struct py_runtime *rt,
		     int64_t *distance)
{
	struct find_lead *f = malloc(sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	*f = (struct find_lead){ .work = { .run = find_lead_run, .free = free_work },
				 .task = *task,
				 .runtime = *rt,
				 .distance = *distance };
	r = run_look(l, LOOK_SEARCH, task->pid, 0, &f->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	r = f->r;
	*distance = f->distance;
	free(f);
	return r;
}

/* --- memory ----------------------------------------------------------------------------------- */

struct reading {
	struct work work;
	pid_t pid;
	uint64_t addr;
	size_t len, steady;
	int r;
	char bytes[]; /* len, and steady */
};

static void read_run(struct work *w, void *cache)
{
	struct reading *rd = (struct reading *)w;

	(void)cache;
	rd->r = mem_read(rd->pid, rd->addr, rd->bytes, rd->len);
	if (!rd->r && rd->steady)
		rd->r = mem_read(rd->pid, rd->addr, rd->bytes + rd->len, rd->steady);
	if (!rd->r && memcmp(rd->bytes, rd->bytes + rd->len, rd->steady))
		rd->r = -ESTALE;
}

int looker_read(struct looker *l, pid_t pid, uint64_t addr, void *buf, size_t len, size_t steady)
{
	struct reading *rd = malloc(sizeof(*rd) + len + steady);
	int r;

	if (!rd)
		return -ENOMEM;
	*rd = (struct reading){
		.work = { .run = read_run, .free = free_work },
		.pid = pid,
		.addr = addr,
		.len = len,
		.steady = steady,
	};
	r = run_look(l, LOOK_READ, pid, len, &rd->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	r = rd->r;
	if (!r)
		memcpy(buf, rd->bytes, len);
	free(rd);
	return r;
}

#define PAGE_BYTES 4096 /* the smallest there is: touching more pages than need be does no harm */

struct touching {
	struct work work;
	pid_t pid;
	struct py_offsets off;
	size_t count;
	struct page_range ranges[];
};

/* A field of a code object that is a pointer; 0 if the layout has no such field. */
static uint64_t code_pointer(const uint8_t *code, size_t size, uint16_t offset)
{
	uint64_t value;

	if (offset == OFF_NONE || offset + sizeof(value) > size)
		return 0;
	memcpy(&value, code + offset, sizeof(value));
	return value;
}

/* What is read is thrown away: by now it may be something else. */
static void touch_code(pid_t pid, const struct page_range *range, const struct py_offsets *off)
{
	const uint16_t pointers[] = { off->code_filename, off->code_name, off->code_qualname,
				      off->code_linetable };
	uint8_t code[PAGE_BYTES], byte;
	size_t size = range->bytes < sizeof(code) ? range->bytes : sizeof(code);

	if (mem_read(pid, range->addr, code, size) < 0)
		return;
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		uint64_t addr = code_pointer(code, size, pointers[i]);

		/* Its page and the next: what a name or a line table spans. */
		if (addr && mem_read(pid, addr, &byte, 1) == 0)
			mem_read(pid, (addr | (PAGE_BYTES - 1)) + 1, &byte, 1);
	}
}

static void touch_run(struct work *w, void *cache)
{
	const struct touching *t = (const struct touching *)w;
	char byte;

	(void)cache;
	for (size_t i = 0; i < t->count; i++) {
		const struct page_range *p = &t->ranges[i];

		if (p->is_code)
			touch_code(t->pid, p, &t->off);
		else if (!mem_read(t->pid, p->addr, &byte, 1) && p->bytes)
			mem_read(t->pid, p->addr + p->bytes - 1, &byte, 1);
	}
	err_clear();
}

void looker_touch(struct looker *l, pid_t pid, const struct py_offsets *off,
		  const struct page_range *ranges, size_t count)
{
	struct touching *t = malloc(sizeof(*t) + count * sizeof(t->ranges[0]));

	if (!t)
		return;
	*t = (struct touching){ .work = { .run = touch_run, .free = free_work },
				.pid = pid,
				.off = *off,
				.count = count };
	memcpy(t->ranges, ranges, count * sizeof(t->ranges[0]));
	if (!run_look(l, LOOK_READ, pid, 0, &t->work, LOOK_SOON_NS))
		free(t);
	err_clear();
}

struct naming {
	struct work work;
	struct thread_names *names; /* owned */
	int r;
};

static void name_run(struct work *w, void *cache)
{
	struct naming *n = (struct naming *)w;

	(void)cache;
	n->r = thread_names_read(n->names);
}

static void name_free(struct work *w)
{
	free(((struct naming *)w)->names);
	free(w);
}

int looker_thread_names(struct looker *l, struct thread_names **names)
{
	struct naming *n = malloc(sizeof(*n));
	pid_t pid = (*names)->pid;
	int r;

	if (!n) {
		free(take_ptr(*names));
		return -ENOMEM;
	}
	*n = (struct naming){ .work = { .run = name_run, .free = name_free },
			      .names = take_ptr(*names) };
	r = run_look(l, LOOK_READ, pid, 0, &n->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	r = n->r;
	if (!r)
		*names = take_ptr(n->names);
	name_free(&n->work);
	return r;
}

struct placing {
	struct work work;
	struct our_cgroups *ours;
	pid_t pid;
	bool is_found;
	struct container found;
};

static void place_run(struct work *w, void *cache)
{
	struct placing *p = (struct placing *)w;

	(void)cache;
	p->is_found = container_find(p->pid, &p->ours->namespace, &p->found);
}

static void place_free(struct work *w)
{
	our_cgroups_drop(((struct placing *)w)->ours);
	free(w);
}

int looker_container(struct looker *l, pid_t pid, struct container *out)
{
	struct placing *p = calloc(1, sizeof(*p));
	bool is_found;
	int r;

	if (!p)
		return -ENOMEM;
	p->work = (struct work){ .run = place_run, .free = place_free };
	p->pid = pid;
	p->ours = l->ours;
	__atomic_add_fetch(&l->ours->refs, 1, __ATOMIC_RELAXED);
	r = run_look(l, LOOK_READ, pid, 0, &p->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	is_found = p->is_found;
	if (is_found)
		*out = p->found;
	place_free(&p->work);
	return is_found;
}

struct publishing {
	struct work work;
	pid_t pid;
	int r;
	struct published found;
};

static void publishing_run(struct work *w, void *cache)
{
	struct publishing *p = (struct publishing *)w;

	(void)cache;
	p->r = process_context_read(p->pid, &p->found.context);
	if (!p->r && p->found.context.has_threads)
		p->r = thread_context_find(p->pid, &p->found.threads);
	err_clear();
}

static void publishing_free(struct work *w)
{
	process_context_release(&((struct publishing *)w)->found.context);
	free(w);
}

int looker_published(struct looker *l, pid_t pid, struct published *out)
{
	struct publishing *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->work = (struct work){ .run = publishing_run, .free = publishing_free };
	p->pid = pid;
	r = run_look(l, LOOK_READ, pid, PROCESS_CONTEXT_BYTES_MAX, &p->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	r = p->r == -ENOMEM ? p->r : 0;
	*out = p->found;
	p->found = (struct published){ 0 };
	publishing_free(&p->work);
	return r;
}

uint64_t looker_refused(const struct looker *l)
{
	return __atomic_load_n(&l->refused, __ATOMIC_RELAXED);
}

struct asking {
	struct work work;
	pid_t pid;
	int r;
	char args[ARGS_BYTES];
};

static void ask_run(struct work *w, void *cache)
{
	struct asking *a = (struct asking *)w;
	_cleanup_(freep) char *args = NULL;
	size_t len;

	(void)cache;
	a->r = proc_cmdline(a->pid, &args, &len);
	err_clear();
	if (a->r < 0)
		return;
	a->r = len < sizeof(a->args) ? (int)len : (int)sizeof(a->args);
	memcpy(a->args, args, (size_t)a->r);
}

int looker_arguments(struct looker *l, pid_t pid, char out[ARGS_BYTES])
{
	struct asking *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->work = (struct work){ .run = ask_run, .free = free_work };
	a->pid = pid;
	r = run_look(l, LOOK_READ, pid, 0, &a->work, LOOK_SOON_NS);
	if (r < 0)
		return r;
	r = a->r;
	if (r > 0)
		memcpy(out, a->args, (size_t)r);
	free(a);
	return r;
}
