/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/task_stacks.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "collect/listing.h"
#include "collect/sample.h"
#include "collect/sweeper.h"

#define LIST_NS 250000000ULL         /* who is recorded is asked so often, */
#define LIST_NEW_NS 20000000ULL      /* and so soon again if there are new ones, */
#define LIST_REST 100                /* and after so many times what it took */
#define FIRST_SWEEPS_NS 500000000ULL /* those who are there already are waited for */
#define FIRST_PAUSE_NS 2000000L
#define PATHS_MAX 8           /* of tasks that wait for one; the last has what is left */
#define PARENTS_DEPTH_MAX 128 /* tasks above one; more: cut there */
#define WHOLE 1e9             /* the share of a path that is alone */

/* A way from a task that nobody awaits down to one, as a stack, and its share of that one. */
struct path {
	uint32_t stack;
	uint32_t depth; /* frames */
	double share;
};

/* What is known of a task of a sweep: its own frames included. */
struct known_task {
	bool is_known, is_open; /* open: above itself */
	bool has_children;
	uint8_t count;
	struct path paths[PATHS_MAX];
};

/* Where tasks wait, and how many. */
struct place {
	uint32_t thread, stack, labels;
	double tasks;
};

struct places {
	struct place *items; /* a VEC, in order where each is in it once */
	size_t len, cap;
};

/* A process as it was last swept. */
struct graph {
	struct target_id target;
	struct sweep *sweep;  /* owned */
	uint64_t from_ns;     /* task time up to here is in the profile */
	uint64_t gap_ns;      /* between the sweep and the one before, or the process's begin */
	struct places before; /* where tasks waited at that one, as the profile has them */
	bool is_anew;         /* nobody knows that: the profile is another one */
	struct address_map indexes; /* by the tasks' addresses */
	struct address_map frames;  /* of the profile, by hashes of names and lines */
	struct known_task *tasks;   /* as the sweep has them */
};

struct task_stacks {
	struct task_stacks_opts opts;
	struct sweeper *sweeper;
	VEC(struct graph) graphs;
	struct listing listing;
	size_t targets;      /* whom the sweeper has */
	struct places sums;  /* of the sweep that is summed up */
	VEC(uint64_t) unmet; /* processes that ended before a sweep of theirs was taken */
	uint64_t begun_ns, listed_ns, rested_ns;
	uint64_t known; /* processes that there were to list then */
	uint64_t turn;  /* of several paths */
	uint16_t kind;  /* in the profile; 0: not yet */
	struct task_stacks_stats stats;
	char failed[ERR_BYTES];
};

/* What is of the profile's ids. */
static void graph_forget(struct graph *g)
{
	address_map_release(&g->frames);
	g->before.len = 0;
	g->is_anew = true;
	if (g->tasks)
		for (size_t i = 0; i < g->sweep->tasks.tasks.len; i++)
			g->tasks[i].is_known = false;
}

static void graph_release(struct graph *g)
{
	address_map_release(&g->frames);
	address_map_release(&g->indexes);
	vec_release(&g->before);
	free(g->tasks);
	sweep_free(g->sweep);
}

void task_stacks_free(struct task_stacks *ts)
{
	if (!ts)
		return;
	sweeper_free(ts->sweeper);
	for (size_t i = 0; i < ts->graphs.len; i++)
		graph_release(&ts->graphs.items[i]);
	vec_release(&ts->graphs);
	listing_release(&ts->listing);
	vec_release(&ts->sums);
	vec_release(&ts->unmet);
	free(ts);
}

/* --- whom to sweep ---------------------------------------------------------------------------- */

static bool is_wanted(const struct task_stacks *ts, const struct proc_row *row, uint64_t process)
{
	return row->layout < LAYOUT_UNSURE &&
	       (ts->opts.has_filter ? row->is_target
				    : processes_find(ts->opts.processes, process) != NULL);
}

/* When it began: its program did later, if it was there at the listing before as another one. */
static uint64_t begin_of(const struct task_stacks *ts, const struct proc_row *row)
{
	uint64_t now_ns = monotonic_ns();
	uint64_t start_ns = row->start_ns - difference(boottime_ns(), now_ns);

	if (!ts->listed_ns)
		return 0;
	return start_ns > ts->listed_ns ? start_ns : now_ns;
}

/* Its identity, which is asked for once. 0: it is gone. */
static uint64_t identify(struct task_stacks *ts, uint32_t pid, const struct proc_row *row)
{
	const struct listed *known = listing_find(&ts->listing, pid, row->exec_id, row->start_ns);
	struct task_record task;
	struct listed found = { .pid = pid,
				.exec_id = row->exec_id,
				.start_ns = row->start_ns,
				.since_ns = begin_of(ts, row) };

	if (known)
		return known->process;
	if (session_find_task(ts->opts.session, pid, &task) < 0)
		return 0;
	found.process = task.process;
	return listing_add(&ts->listing, &found) < 0 ? 0 : found.process;
}

static struct graph *graph_of(const struct task_stacks *ts, uint64_t process)
{
	for (size_t i = 0; i < ts->graphs.len; i++)
		if (ts->graphs.items[i].target.process == process)
			return &ts->graphs.items[i];
	return NULL;
}

struct targets {
	struct target_id *items; /* a VEC */
	size_t len, cap;
};

static int find_targets(struct task_stacks *ts, struct targets *out)
{
	_cleanup_(pids_releasep) struct pids pids = VEC_INIT;
	struct proc_row row;
	int r = session_list_processes(ts->opts.session, &pids);

	if (!r)
		r = listing_begin(&ts->listing);
	for (size_t i = 0; i < pids.len && r >= 0; i++) {
		uint32_t pid = (uint32_t)pids.items[i];
		uint64_t process;

		if (session_find_process(ts->opts.session, pid, &row) < 0)
			continue;
		process = row.layout < LAYOUT_UNSURE ? identify(ts, pid, &row) : 0;
		if (process && is_wanted(ts, &row, process))
			r = vec_push(out, ((struct target_id){ process, pid }));
	}
	return r;
}

static int end_process(struct task_stacks *ts, struct graph *g, uint64_t now_ns);
static int take_sweeps(struct task_stacks *ts);

/* Those that are gone. */
static int drop_graphs(struct task_stacks *ts, const struct targets *targets, uint64_t now_ns)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < ts->graphs.len; i++) {
		struct graph g = ts->graphs.items[i];

		if (targets->len && bsearch(&g.target, targets->items, targets->len,
					    sizeof(g.target), target_id_compare)) {
			ts->graphs.items[kept++] = g;
			continue;
		}
		if (!r)
			r = end_process(ts, &g, now_ns);
		session_set_asyncio(ts->opts.session, g.target.pid, NULL);
		graph_release(&g);
	}
	ts->graphs.len = kept;
	return r;
}

/* A sweep of theirs may have come meanwhile. */
static void count_unmet(struct task_stacks *ts)
{
	for (size_t i = 0; i < ts->unmet.len; i++)
		ts->stats.unmet += !graph_of(ts, ts->unmet.items[i]);
	ts->unmet.len = 0;
}

static bool should_list(struct task_stacks *ts, uint64_t now_ns)
{
	uint64_t known = session_pythons_begun(ts->opts.session), met, contained;
	uint64_t pause_ns = LIST_NS;

	processes_count(ts->opts.processes, &met, &contained);
	known += met;
	if (known != ts->known)
		pause_ns = LIST_NEW_NS;
	if (ts->listed_ns && (now_ns < ts->listed_ns + pause_ns || now_ns < ts->rested_ns))
		return false;
	ts->known = known;
	return true;
}

/* What was swept of those that are gone is taken before they are: none comes after that. */
static int list_targets(struct task_stacks *ts, uint64_t now_ns)
{
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct targets targets = VEC_INIT;
	int r = find_targets(ts, &targets), taken = 0;

	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	ts->listed_ns = now_ns;
	ts->rested_ns = now_ns + LIST_REST * cpu_ns;
	ts->targets = targets.len;
	if (targets.len)
		qsort(targets.items, targets.len, sizeof(targets.items[0]), target_id_compare);
	if (r >= 0)
		r = sweeper_set_targets(ts->sweeper, targets.items, targets.len);
	if (r >= 0)
		r = taken = take_sweeps(ts);
	count_unmet(ts);
	if (r >= 0)
		r = drop_graphs(ts, &targets, now_ns);
	vec_release(&targets);
	return r < 0 ? r : taken;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int intern_text(struct task_stacks *ts, const char *text, uint32_t *id)
{
	return strtab_intern(ts->opts.profile->strings, text, strlen(text), id);
}

/* Texts stay where they are as long as the sweep does. */
static int intern_frame(struct task_stacks *ts, struct graph *g, const struct task_frame *f,
			uint32_t *id)
{
	uint64_t key = hash_combine(hash_combine((uintptr_t)f->name, (uintptr_t)f->file),
				    (uint64_t)f->first_line << 32 | (uint32_t)f->line) |
		       1;
	struct frame frame = { .kind = FRAME_PYTHON,
			       .flags = f->line ? 0 : FRAME_LINE_APPROXIMATE,
			       .line = (uint32_t)(f->line ?: f->first_line),
			       .first_line = (uint32_t)f->first_line };
	int r;

	*id = address_map_get(&g->frames, key);
	if (*id != ADDRESS_NONE)
		return 0;
	if ((r = intern_text(ts, f->name, &frame.name)) < 0 ||
	    (r = intern_text(ts, f->file, &frame.file)) < 0 ||
	    (r = frametab_intern(ts->opts.profile->frames, &frame, id)) < 0)
		return r;
	return address_map_put(&g->frames, key, *id);
}

/* The task's own frames on top of a path. */
static int push_task(struct task_stacks *ts, struct graph *g, const struct inspect_task *task,
		     struct path *path)
{
	const struct task_frame *frames = g->sweep->tasks.frames.items + task->frames;
	uint32_t frame;
	int r = 0;

	for (uint32_t i = 0; i < task->frames_len && path->depth < FRAMES_MAX && !r; i++) {
		r = intern_frame(ts, g, &frames[i], &frame);
		if (!r)
			r = stacktab_intern(ts->opts.profile->stacks, path->stack, frame,
					    &path->stack);
		path->depth++;
	}
	return r;
}

static int find_paths(struct task_stacks *ts, struct graph *g, uint32_t place, unsigned int depth);

/* The paths of one who awaits it, each with its part of the parent's share. */
static void take_paths(struct known_task *known, const struct known_task *parent, double share)
{
	for (uint8_t i = 0; i < parent->count; i++) {
		double part = share * parent->paths[i].share / WHOLE;

		if (known->count == PATHS_MAX) {
			known->paths[PATHS_MAX - 1].share += part;
			continue;
		}
		known->paths[known->count] = parent->paths[i];
		known->paths[known->count++].share = part;
	}
}

/* One that awaits what is above it itself, in a cycle, is left out: then the path begins there. */
static int find_above(struct task_stacks *ts, struct graph *g, uint32_t place, unsigned int depth)
{
	const struct inspect_tasks *t = &g->sweep->tasks;
	const struct inspect_task *task = &t->tasks.items[place];
	struct known_task *known = &g->tasks[place];
	uint32_t parents = depth < PARENTS_DEPTH_MAX ? task->awaited_by_len : 0;
	int r = 0;

	known->count = 0;
	known->is_open = true;
	for (uint32_t i = 0; i < parents && !r; i++) {
		uint32_t parent = t->links.items[task->awaited_by + i];

		if (g->tasks[parent].is_open)
			continue;
		r = find_paths(ts, g, parent, depth + 1);
		if (!r)
			take_paths(known, &g->tasks[parent], WHOLE);
	}
	known->is_open = false;
	return r;
}

static int find_paths(struct task_stacks *ts, struct graph *g, uint32_t place, unsigned int depth)
{
	const struct inspect_task *task = &g->sweep->tasks.tasks.items[place];
	struct known_task *known = &g->tasks[place];
	double sum = 0;
	int r;

	if (known->is_known)
		return 0;
	if ((r = find_above(ts, g, place, depth)) < 0)
		return r;
	if (!known->count)
		known->paths[known->count++] = (struct path){ .share = WHOLE };
	for (uint8_t i = 0; i < known->count; i++)
		sum += known->paths[i].share;
	for (uint8_t i = 0; i < known->count && !r; i++) {
		known->paths[i].share *= WHOLE / sum;
		r = push_task(ts, g, task, &known->paths[i]);
	}
	known->is_known = !r;
	return r;
}

/* Puts a stack of the profile on top of another one. */
static int move_stack(struct profile *p, uint32_t stack, uint32_t below, uint32_t *out)
{
	struct {
		uint32_t *items;
		size_t len, cap;
	} frames = VEC_INIT;
	int r = 0;

	for (uint32_t at = stack; at && !r; at = stacktab_entries(p->stacks)[at].parent)
		r = vec_push(&frames, stacktab_entries(p->stacks)[at].frame);
	*out = below;
	while (!r && frames.len)
		r = stacktab_intern(p->stacks, *out, frames.items[--frames.len], out);
	vec_release(&frames);
	return r;
}

/* Its place in the graph, where it is the same task and not one that came to its address. */
static uint32_t find_task(const struct graph *g, const struct sample_event *e)
{
	uint32_t place = address_map_get(&g->indexes, e->task);
	const struct inspect_tasks *t = &g->sweep->tasks;
	const struct inspect_task *task;

	if (place == ADDRESS_NONE)
		return ADDRESS_NONE;
	task = &t->tasks.items[place];
	return task->frames_len && t->frames.items[task->frames].frame == e->coro_frame
		       ? place
		       : ADDRESS_NONE;
}

int task_stacks_find(struct task_stacks *ts, const struct sample_event *e, bool allow_unknown,
		     uint32_t below, uint32_t *stack)
{
	struct graph *g = graph_of(ts, e->process);
	uint32_t place = g ? find_task(g, e) : ADDRESS_NONE;
	const struct path *path;
	struct known_task *known;
	int r;

	*stack = below;
	if (place == ADDRESS_NONE) {
		if (!allow_unknown && (!g || g->sweep->begin_ns < e->ktime_ns))
			return -EAGAIN;
		ts->stats.unseen++;
		return 0;
	}
	known = &g->tasks[place];
	/* Of its own place only those above count: its frames are in the sample. */
	if (known->is_known)
		known->is_known = false;
	if ((r = find_above(ts, g, place, 0)) < 0 || !known->count)
		return r;
	path = &known->paths[ts->turn++ % known->count];
	if (!below) {
		*stack = path->stack;
		return 0;
	}
	return move_stack(ts->opts.profile, path->stack, below, stack);
}

/* --- task time -------------------------------------------------------------------------------- */

static int kind_id(struct task_stacks *ts, uint16_t *kind)
{
	struct sample_kind k = { .period = 1, .unit = UNIT_NS };
	int r;

	if (!ts->kind && ((r = intern_text(ts, PROFILE_TASK, &k.name)) < 0 ||
			  (r = intern_text(ts, "asyncio", &k.event)) < 0 ||
			  (r = profile_add_kind(ts->opts.profile, &k, &ts->kind)) < 0))
		return r;
	*kind = ts->kind;
	return 0;
}

/* As the kernel has it: py_read_task_name() in bpf/python_task.h. */
static bool is_made_up(const char *name)
{
	return !strncmp(name, "Task-", 5) && isdigit((unsigned char)name[5]);
}

/* A name is cut where that of a sample is: by what its characters take in the target. */
static size_t name_bytes(const char *name, bool *is_cut)
{
	uint32_t widest = 1;
	size_t chars = 0, at = 0, limit;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		uint32_t width = *c >= 0xf0 ? 4 : *c >= 0xc4 && *c < 0xf0 ? 2 : 1;

		widest = width > widest ? width : widest;
	}
	limit = LABEL_BYTES_MAX / widest;
	for (; name[at]; at++) {
		if (((unsigned char)name[at] & 0xc0) == 0x80)
			continue;
		if (chars++ == limit)
			break;
	}
	*is_cut = name[at];
	return at;
}

static int label_task(struct task_stacks *ts, const struct inspect_task *task, uint32_t *labels)
{
	const char *name = is_made_up(task->name) ? task->coroutine : task->name;
	char text[4 * LABEL_BYTES_MAX + 8];
	uint32_t name_id, value_id;
	bool is_cut;
	size_t len = name_bytes(name, &is_cut);
	int r;

	*labels = 0;
	if (!len)
		return 0;
	if (name == task->name) {
		snprintf(text, sizeof(text), "%.*s%s", (int)len, name,
			 is_cut ? "\xe2\x80\xa6" : "");
		name = text;
	}
	if ((r = intern_text(ts, PROFILE_TASK, &name_id)) < 0 ||
	    (r = intern_text(ts, name, &value_id)) < 0)
		return r;
	return labeltab_add(ts->opts.profile->labels, 0, name_id, value_id, labels);
}

/* The thread of a loop, 0 and *id; -ENOENT: it runs in none that is known. */
static int loop_thread(struct task_stacks *ts, const struct graph *g, uint32_t loop, uint32_t *id)
{
	const struct inspect_loop *l = &g->sweep->tasks.loops.items[loop];
	const char *comm = g->sweep->comms[loop];
	const struct sample_event e = { .pid = g->target.pid,
					.tid = (uint32_t)l->tid,
					.process = g->target.process };
	int r;

	if (!l->tid)
		return -ENOENT;
	if ((r = processes_introduce(ts->opts.processes, &e, comm)) < 0 ||
	    (r = threads_introduce(ts->opts.threads, &e, comm)) < 0)
		return r;
	return threads_id(ts->opts.threads, &e, id);
}

static int push_marker(struct task_stacks *ts, const char *name, uint32_t *stack)
{
	struct frame f = { .kind = FRAME_MARKER };
	uint32_t frame;
	int r;

	if ((r = intern_text(ts, name, &f.name)) < 0 ||
	    (r = frametab_intern(ts->opts.profile->frames, &f, &frame)) < 0)
		return r;
	return stacktab_intern(ts->opts.profile->stacks, *stack, frame, stack);
}

/* One task that waits, all of its paths. */
static int sum_task(struct task_stacks *ts, struct graph *g, uint32_t place)
{
	const struct inspect_task *task = &g->sweep->tasks.tasks.items[place];
	struct known_task *known = &g->tasks[place];
	struct place sum = { 0 };
	int r;

	if ((r = loop_thread(ts, g, task->loop, &sum.thread)) < 0)
		return r == -ENOENT ? 0 : r;
	if ((r = find_paths(ts, g, place, 0)) < 0 || (r = label_task(ts, task, &sum.labels)) < 0)
		return r;
	for (uint8_t i = 0; i < known->count; i++) {
		sum.stack = known->paths[i].stack;
		sum.tasks = known->paths[i].share / WHOLE;
		if (task->state == TASK_READY && (r = push_marker(ts, "<ready>", &sum.stack)) < 0)
			return r;
		if ((r = vec_push(&ts->sums, sum)) < 0)
			return r;
	}
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->labels < y->labels ? -1 : x->labels > y->labels;
}

/* Each place once: a thousand tasks that wait alike are one. */
static void merge_places(struct places *p)
{
	size_t kept = 0;

	if (p->len)
		qsort(p->items, p->len, sizeof(*p->items), compare_places);
	for (size_t i = 0; i < p->len; i++) {
		if (kept && !compare_places(&p->items[kept - 1], &p->items[i]))
			p->items[kept - 1].tasks += p->items[i].tasks;
		else
			p->items[kept++] = p->items[i];
	}
	p->len = kept;
}

/*
 * How sure the time between two sweeps is. Had as many tasks waited in a place all along, both
 * would have met as many: half of the square of how they differ is the variance of one sweep, if
 * they were drawn at random, and at most that if tasks stay for longer.
 */
static void add_variance(struct task_stacks *ts, const struct places *before,
			 const struct places *after, uint64_t gap_ns)
{
	size_t i = 0, k = 0;

	while (i < before->len || k < after->len) {
		int order = i == before->len  ? 1
			    : k == after->len ? -1
					      : compare_places(&before->items[i], &after->items[k]);
		double change = 0;

		if (order <= 0)
			change -= before->items[i++].tasks;
		if (order >= 0)
			change += after->items[k++].tasks;
		change *= (double)gap_ns;
		ts->stats.variance_ns2 += change * change / 2;
	}
}

/* Before a sweep, or after the last one. */
static void note_gap(struct task_stacks *ts, const struct graph *g, uint64_t ns)
{
	if (!g->sweep->tasks.loops.len)
		return;
	ts->stats.gaps_ns += (double)ns;
	ts->stats.gaps_ns2 += (double)ns * (double)ns;
}

static int add_places(struct task_stacks *ts, uint64_t from_ns, uint64_t ns)
{
	struct sample s = { .flags = SAMPLE_BIT_WEIGHTED };
	int r = ts->sums.len ? kind_id(ts, &s.kind) : 0;

	s.time_ns = from_ns > ts->opts.start_ns ? from_ns - ts->opts.start_ns : 0;
	for (size_t i = 0; i < ts->sums.len && r >= 0; i++) {
		const struct place *p = &ts->sums.items[i];

		s.thread = p->thread;
		s.stack = p->stack;
		s.labels = p->labels;
		s.value = (uint64_t)(p->tasks * (double)ns + 0.5);
		ts->stats.time_ns += s.value;
		if (s.value)
			r = profile_add_sample(ts->opts.profile, &s);
	}
	return r;
}

/* Where tasks waited at the sweep, *unsure of them were left out. */
static int find_places(struct task_stacks *ts, struct graph *g, size_t *unsure)
{
	const struct inspect_tasks *t = &g->sweep->tasks;
	int r = 0;

	*unsure = 0;
	ts->sums.len = 0;
	for (uint32_t i = 0; i < t->tasks.len && r >= 0; i++) {
		const struct inspect_task *task = &t->tasks.items[i];

		if (task->state == TASK_RUNNING || g->tasks[i].has_children)
			continue;
		if (task->is_unsure)
			++*unsure;
		else
			r = sum_task(ts, g, i);
	}
	merge_places(&ts->sums);
	return r;
}

/* What the sweep stands for up to then. */
static int end_graph(struct task_stacks *ts, struct graph *g, uint64_t until_ns)
{
	uint64_t from_ns = g->from_ns, ns = difference(until_ns, from_ns);
	size_t unsure;
	int r;

	if (!ts->opts.has_time || !g->tasks || !ns)
		return 0;
	if ((r = find_places(ts, g, &unsure)) < 0 || (r = add_places(ts, from_ns, ns)) < 0)
		return r;
	ts->stats.unsure_ns += unsure * ns;
	if (!g->is_anew)
		add_variance(ts, &g->before, &ts->sums, g->gap_ns);
	g->is_anew = false;
	g->before.len = 0;
	g->from_ns = until_ns;
	return vec_append(&g->before, ts->sums.items, ts->sums.len);
}

/* Its last sweep stands for all the time since: most tasks end with their process. */
static int end_process(struct task_stacks *ts, struct graph *g, uint64_t now_ns)
{
	static const struct places none;
	const struct listed *listed = listing_get(&ts->listing, g->target.process);
	uint64_t until_ns = now_ns, swept_ns = g->sweep->end_ns;
	int r;

	if (listed && listed->until_ns > swept_ns)
		until_ns = listed->until_ns;
	r = end_graph(ts, g, until_ns);
	add_variance(ts, &g->before, &none, difference(until_ns, swept_ns));
	note_gap(ts, g, difference(until_ns, swept_ns));
	return r;
}

int task_stacks_settle(struct task_stacks *ts, uint64_t now_ns)
{
	int r = list_targets(ts, now_ns); /* those that have ended are not there up to now */

	for (size_t i = 0; i < ts->graphs.len && r >= 0; i++) {
		struct graph *g = &ts->graphs.items[i];

		note_gap(ts, g, difference(now_ns, g->sweep->end_ns));
		r = end_graph(ts, g, now_ns);
	}
	return r < 0 ? r : 0;
}

int task_stacks_end_thread(struct task_stacks *ts, const struct thread_times_event *e)
{
	listing_end(&ts->listing, e->process, e->ktime_ns);
	if (e->tid != e->pid || !ts->opts.has_time || graph_of(ts, e->process))
		return 0;
	return vec_push(&ts->unmet, e->process);
}

/* --- sweeps ----------------------------------------------------------------------------------- */

static int graph_begin(struct graph *g, struct sweep *sw)
{
	const struct inspect_tasks *t = &sw->tasks;
	int r = 0;

	g->sweep = sw;
	g->tasks = calloc(t->tasks.len + 1, sizeof(*g->tasks));
	if (!g->tasks)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->tasks.len && !r; i++) {
		const struct inspect_task *task = &t->tasks.items[i];

		r = address_map_put(&g->indexes, task->id, i);
		for (uint32_t k = 0; k < task->awaited_by_len; k++)
			g->tasks[t->links.items[task->awaited_by + k]].has_children = true;
	}
	return r;
}

/*
 * The sweep is g's from here on. As long as the process is not met, which brings what is known of
 * it, the next one stands for what this one would.
 */
static int replace(struct task_stacks *ts, struct graph *g, struct sweep *sw)
{
	uint64_t gap_ns = difference(sw->begin_ns, g->sweep->end_ns);
	struct graph next = { .target = g->target };
	bool is_met = processes_find(ts->opts.processes, g->target.process);
	int r = is_met ? end_graph(ts, g, g->sweep->end_ns + gap_ns / 2) : 0;

	next.from_ns = g->from_ns;
	next.gap_ns = is_met ? gap_ns : g->gap_ns + gap_ns;
	next.is_anew = g->is_anew;
	next.before = g->before;
	g->before = (struct places)VEC_INIT;
	graph_release(g);
	*g = next;
	if (graph_begin(g, sw) < 0)
		return -ENOMEM;
	note_gap(ts, g, gap_ns);
	return r;
}

/* The first one of a process stands for all time before, since that was there. */
static int add_graph(struct task_stacks *ts, struct sweep *sw)
{
	struct graph g = { .target = sw->target, .from_ns = ts->opts.start_ns };
	const struct listed *listed = listing_get(&ts->listing, sw->target.process);
	int r = vec_reserve(&ts->graphs, 1);

	if (listed && listed->since_ns > g.from_ns)
		g.from_ns = listed->since_ns;
	g.gap_ns = difference(sw->begin_ns, g.from_ns);
	if (r < 0) {
		sweep_free(sw);
		return r;
	}
	r = graph_begin(&g, sw);
	note_gap(ts, &g, g.gap_ns);
	vec_push(&ts->graphs, g);
	return r;
}

static void note_failure(struct task_stacks *ts, const struct sweep *sw)
{
	ts->stats.failed_count++;
	if (sw->r != -ENOTSUP || ts->stats.failed_pid)
		return;
	memcpy(ts->failed, sw->text, sizeof(ts->failed));
	ts->stats.failed = ts->failed;
	ts->stats.failed_pid = sw->target.pid;
}

static void note_row(struct task_stacks *ts, const struct sweep *sw)
{
	const struct graph *g = graph_of(ts, sw->target.process);

	if (!sw->row.process || (g && !memcmp(&g->sweep->row, &sw->row, sizeof(sw->row))))
		return;
	session_set_asyncio(ts->opts.session, sw->target.pid, &sw->row);
}

/* The sweep is ours. */
static int take_sweep(struct task_stacks *ts, struct sweep *sw)
{
	struct graph *g = graph_of(ts, sw->target.process);

	if (sw->r < 0) {
		note_failure(ts, sw);
		sweep_free(sw);
		return 0;
	}
	note_row(ts, sw);
	ts->stats.cpu_ns += sw->cpu_ns;
	ts->stats.has_asyncio |= sw->tasks.has_asyncio || sw->tasks.loops.len;
	ts->stats.unreadable += sw->tasks.unreadable;
	ts->stats.sweeps += sw->tasks.loops.len > 0;
	return g ? replace(ts, g, sw) : add_graph(ts, sw);
}

/* 1: there were some. */
static int take_sweeps(struct task_stacks *ts)
{
	struct sweep *sw;
	int r = 0, any = 0;

	while (r >= 0 && (sw = sweeper_take(ts->sweeper))) {
		r = take_sweep(ts, sw);
		any = 1;
	}
	return r < 0 ? r : any;
}

int task_stacks_step(struct task_stacks *ts, uint64_t now_ns)
{
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int listed = should_list(ts, now_ns) ? list_targets(ts, now_ns) : 0;
	int r = listed < 0 ? listed : take_sweeps(ts);

	if (r < 0)
		return r;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	if (listed || r) {
		sweeper_charge(ts->sweeper, cpu_ns);
		ts->stats.cpu_ns += cpu_ns;
	}
	return listed || r;
}

/* From the first sample on it is known where tasks are, of those who are there already. */
static int await_first(struct task_stacks *ts)
{
	const struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };
	uint64_t until_ns = ts->begun_ns + FIRST_SWEEPS_NS, now_ns;
	int r;

	while ((r = task_stacks_step(ts, now_ns = monotonic_ns())) >= 0 && now_ns < until_ns &&
	       ts->graphs.len + ts->stats.failed_count < ts->targets)
		nanosleep(&pause, NULL);
	return r < 0 ? r : 0;
}

int task_stacks_new(const struct task_stacks_opts *opts, struct task_stacks **out)
{
	_cleanup_(task_stacks_freep) struct task_stacks *ts = calloc(1, sizeof(*ts));
	int r;

	if (!ts)
		return -ENOMEM;
	ts->opts = *opts;
	ts->begun_ns = monotonic_ns();
	if ((r = sweeper_new(&ts->sweeper)) < 0 || (r = await_first(ts)) < 0)
		return r;
	*out = take_ptr(ts);
	return 0;
}

/* --- its tables ------------------------------------------------------------------------------- */

void task_stacks_forget_ids(struct task_stacks *ts)
{
	ts->kind = 0;
	for (size_t i = 0; i < ts->graphs.len; i++)
		graph_forget(&ts->graphs.items[i]);
}

void task_stacks_set_start(struct task_stacks *ts, uint64_t start_ns)
{
	ts->opts.start_ns = start_ns;
	for (size_t i = 0; i < ts->graphs.len; i++)
		if (ts->graphs.items[i].from_ns < start_ns)
			ts->graphs.items[i].from_ns = start_ns;
}

const struct task_stacks_stats *task_stacks_stats(const struct task_stacks *ts)
{
	return &ts->stats;
}
