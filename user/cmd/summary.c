/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/account.h"
#include "cmd/figures.h"
#include "cmd/load.h"
#include "cmd/ranking.h"
#include "cmd/terminal.h"
#include "collect/source.h"
#include "collect/wait_words.h"
#include "export/export.h"

#define TOP_FUNCTIONS 5
#define NOT_SAMPLED_TOLD 1000 /* the part of wall time from which on it is told */

/* "1,234 samples" of time, "12,345 page-faults", "1.2 MiB memory". Returns the number in that. */
static uint64_t put_amount(struct line *l, const struct load *loaded, const struct summary_extra *x)
{
	const struct recording *m = profile_recording(loaded->profile);
	struct value_unit of = recording_value_unit(m);
	uint64_t samples = !x->times && value_is_tick(of) ? loaded->ticks : loaded->records;

	if (x->times || of.unit == UNIT_NS) {
		line_putf(l, STYLE_PLAIN, "%s samples", units_count(samples).s);
		return samples;
	}
	line_putf(l, STYLE_PLAIN, "%s %s", value_text(loaded->ticks, of).s, m->mode);
	return loaded->ticks;
}

static void put_samples(struct line *l, const struct load *loaded, const struct summary_extra *x)
{
	size_t processes = x->processes;
	uint64_t amount;

	line_put_foreign(l, STYLE_BOLD, x->output, strlen(x->output));
	line_put(l, STYLE_PLAIN, ": ");
	amount = put_amount(l, loaded, x);
	line_putf(l, STYLE_PLAIN, " of %s process%s", units_count(processes).s,
		  processes == 1 ? "" : "es");
	if (x->contained)
		line_putf(l, STYLE_PLAIN, ", %s in containers", units_count(x->contained).s);
	if (loaded->records != amount)
		line_putf(l, STYLE_PLAIN, " (%s records)", units_count(loaded->records).s);
	line_end(l);
}

static void put_cpu(struct line *l, const struct load *loaded, const struct summary_extra *x)
{
	if (!account_cpu_ns(loaded->profile, loaded->ticks))
		return;
	account_put_cpu(l, loaded->profile, loaded->ticks, x->wall_ns);
	line_end(l);
}

/* One thing that the threads did: " CPU 5.1 s (50.6%)". */
struct doing {
	const char *word;
	uint64_t ns;
};

#define DOINGS (CLASS_COUNT_ + 2) /* of waiting */

static int compare_doings(const void *a, const void *b)
{
	const struct doing *x = a, *y = b;

	return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static uint64_t waited_ns(const struct times_sum *t)
{
	uint64_t ns = t->unseen_ns;

	for (int i = 0; i < CLASS_COUNT_; i++)
		ns += t->wait_ns[i];
	return ns;
}

/* "15 s of 3 threads in 5 s: CPU 5.1 s (34.0%), sleep 7.8 s (52.0%), lock 2.1 s (14.0%)" */
static void put_doings(struct line *l, const struct times_sum *t, uint64_t wall_ns,
		       uint64_t duration_ns)
{
	struct doing waits[DOINGS];
	uint64_t other_ns = t->wait_ns[CLASS_OTHER];
	uint64_t stopped_ns = t->stopped_ns < other_ns ? t->stopped_ns : other_ns;

	for (int i = 0; i < CLASS_COUNT_; i++)
		waits[i] = (struct doing){ wait_class_word(i), t->wait_ns[i] };
	waits[CLASS_OTHER].ns -= stopped_ns;
	waits[CLASS_COUNT_] = (struct doing){ "stopped", stopped_ns };
	waits[CLASS_COUNT_ + 1] = (struct doing){ "before tracking began", t->unseen_ns };
	qsort(waits, DOINGS, sizeof(waits[0]), compare_doings);
	line_putf(l, STYLE_PLAIN, "%s of %s thread%s", units_ns(wall_ns).s,
		  units_count(t->threads).s, t->threads == 1 ? "" : "s");
	if (duration_ns)
		line_putf(l, STYLE_PLAIN, " in %s", units_ns(duration_ns).s);
	line_putf(l, STYLE_PLAIN, ": CPU %s (%s)", units_ns(t->cpu_ns).s,
		  share_text(t->cpu_ns, wall_ns).s);
	for (int i = 0; i < DOINGS && waits[i].ns; i++)
		line_putf(l, STYLE_PLAIN, ", %s %s (%s)", waits[i].word, units_ns(waits[i].ns).s,
			  share_text(waits[i].ns, wall_ns).s);
	line_end(l);
}

/* What the threads did; no sample stands for all of it. */
static void put_times(struct line *l, const struct times_sum *t, uint64_t duration_ns)
{
	uint64_t wall_ns = t->cpu_ns + waited_ns(t);
	uint64_t rest_ns = t->not_sampled_cpu_ns + t->not_sampled_wait_ns;

	if (!wall_ns)
		return;
	put_doings(l, t, wall_ns, duration_ns);
	if (t->wait_ns[CLASS_GIL]) {
		line_putf(l, STYLE_PLAIN,
			  "GIL: %s wait%s, %s (%s); to see who held it: pyebpf report --gil",
			  units_count(t->episodes).s, t->episodes == 1 ? "" : "s",
			  units_ns(t->wait_ns[CLASS_GIL]).s,
			  share_text(t->wait_ns[CLASS_GIL], wall_ns).s);
		line_end(l);
	}
	if (rest_ns < wall_ns / NOT_SAMPLED_TOLD)
		return;
	line_putf(l, STYLE_PLAIN, "not sampled: %s of CPU time, %s of waiting (%s)",
		  units_ns(t->not_sampled_cpu_ns).s, units_ns(t->not_sampled_wait_ns).s,
		  share_text(rest_ns, wall_ns).s);
	line_end(l);
}

static int put_functions(struct line *l, const struct load *loaded)
{
	struct ranking ranking = VEC_INIT;
	int r = ranking_make(loaded, false, RANKING_SELF, &ranking);

	for (size_t i = 0; i < ranking.len && i < TOP_FUNCTIONS && !r; i++) {
		const struct ranked *row = &ranking.items[i];

		line_putf(l, STYLE_PLAIN, "%8s  ", share_text(row->self, loaded->ticks).s);
		line_put_name(l, STYLE_PLAIN, loaded->profile, row->frame);
		line_put(l, STYLE_PLAIN, "  ");
		line_put_place(l, STYLE_DIM, loaded->profile, row->frame, false);
		r = line_end(l);
	}
	vec_release(&ranking);
	return r;
}

static void put_lost(struct line *l, const struct load *loaded)
{
	uint64_t approximate = profile_counter(loaded->profile, "approximate_lines");
	const char *lead = "lost: ";

	for (int i = 0; i < SOURCE_COUNT_; i++) {
		if (!loss_sum(loaded->profile, sources[i].losses))
			continue;
		line_put(l, STYLE_PLAIN, lead);
		account_put_lost(l, loaded->profile, sources[i].losses,
				 account_taken(loaded->profile, i), sources[i].unit);
		lead = "; ";
	}
	if (!l->column)
		line_put(l, STYLE_PLAIN, "nothing lost");
	if (approximate)
		line_putf(l, STYLE_PLAIN, "; lines approximate in %s sample%s (marked ~)",
			  units_count(approximate).s, approximate == 1 ? "" : "s");
	line_end(l);
}

/* Samples represent the ticks between them: what to do for more samples. */
static void put_thinned(struct line *l, const struct load *loaded)
{
	struct thinned_ticks t;

	if (!source_find_thinned(loaded->profile, &t))
		return;
	line_putf(l, STYLE_PLAIN,
		  "one sample represents %.1f ticks: it takes %s, too long for %u Hz; try: -F %u",
		  t.ticks, units_ns(t.sample_ns).s, t.rate_hz, t.rate_fit_hz);
	line_end(l);
}

#define PLACE_SHARE 0.1 /* of task time, of the place whose error is told */

/*
 * The standard error of a place where this share of the time was spent, as a part of that, if what
 * is unsure is unsure everywhere alike.
 */
static struct share_text place_error(const struct task_stacks_stats *t)
{
	return share_text((uint64_t)sqrt(t->variance_ns2 / PLACE_SHARE), t->time_ns);
}

/* From a look at a process to the next one, as the end of a wait finds it: long ones more often. */
static struct units_text look_distance(const struct task_stacks_stats *t)
{
	return units_ns(t->gaps_ns > 0 ? (uint64_t)(t->gaps_ns2 / t->gaps_ns) : 0);
}

/* How well task time is known, and by what it costs. */
static void put_tasks(struct line *l, const struct task_stacks_stats *t, uint64_t wall_ns)
{
	if (!t->sweeps && !t->unseen && !(t->has_asyncio && t->unmet))
		return;
	line_put(l, STYLE_PLAIN, "tasks: ");
	if (t->sweeps)
		line_putf(l, STYLE_PLAIN, "each process scanned every %s", look_distance(t).s);
	else
		line_put(l, STYLE_PLAIN, "never looked at");
	if (t->sweeps && wall_ns)
		line_putf(l, STYLE_PLAIN, ", for %s of one CPU", share_text(t->cpu_ns, wall_ns).s);
	if (t->time_ns)
		line_putf(l, STYLE_PLAIN,
			  "; %s of task time (--kind task), +-%s or better for a place that takes "
			  "10%% of it",
			  units_ns(t->time_ns).s, place_error(t).s);
	if (t->unsure_ns)
		line_putf(l, STYLE_PLAIN, ", %s dropped: tasks changed during the scan",
			  units_ns(t->unsure_ns).s);
	if (t->unmet)
		line_putf(l, STYLE_PLAIN,
			  "; %s process%s ended before a look: tasks that they had are missing",
			  units_count(t->unmet).s, t->unmet == 1 ? "" : "es");
	if (t->unreadable)
		line_putf(l, STYLE_PLAIN, "; %llu could not be read",
			  (unsigned long long)t->unreadable);
	if (t->unseen)
		line_putf(l, STYLE_PLAIN,
			  "; %s sample%s in tasks too short-lived to scan: their awaiting tasks "
			  "are not shown",
			  units_count(t->unseen).s, t->unseen == 1 ? "" : "s");
	line_end(l);
}

static void put_cost(struct line *l, const struct summary_extra *x)
{
	uint64_t cost_ns = x->cpu_ns + x->sampler_ns;

	line_put(l, STYLE_PLAIN, "target never paused");
	if (cost_ns)
		line_putf(l, STYLE_PLAIN, "; pyebpf used %s of CPU time", units_ns(cost_ns).s);
	if (cost_ns && x->wall_ns)
		line_putf(l, STYLE_PLAIN, ", %s of one CPU", share_text(cost_ns, x->wall_ns).s);
	if (x->sampler_ns)
		line_putf(l, STYLE_PLAIN, " (%s in the kernel)", units_ns(x->sampler_ns).s);
	if (x->rss_bytes_max)
		line_putf(l, STYLE_PLAIN, ", %s of memory", units_bytes(x->rss_bytes_max).s);
	line_end(l);
}

/* Of the CPU time that anything used: ticks that met no idle CPU. */
static void put_python_share(struct line *l, const struct load *loaded)
{
	uint64_t ticks = profile_counter(loaded->profile, "ticks");
	uint64_t idle = profile_counter(loaded->profile, "idle");

	if (ticks <= idle)
		return;
	line_putf(l, STYLE_PLAIN, "Python code was %s of all CPU time used",
		  share_text(profile_counter(loaded->profile, "weight"), ticks - idle).s);
	line_end(l);
}

/* Of a format that others read, nothing: they know. */
static void put_next(struct line *l, const char *output)
{
	const struct exporter *e = exporter_for_path(output);
	bool is_page = e == &exporter_html;

	if (e && !is_page && e != &exporter_collapsed)
		return;
	line_put(l, STYLE_PLAIN, is_page ? "next: open " : "next: pyebpf report --tree ");
	line_put_foreign(l, STYLE_PLAIN, output, strlen(output));
	line_put(l, STYLE_PLAIN, is_page ? " in a browser" : "");
	line_end(l);
}

int summary_print(FILE *out, const struct load *loaded, const struct summary_extra *x)
{
	struct terminal t;
	_cleanup_(line_release) struct line l = LINE_INIT(&t);
	int r;

	terminal_init(&t, out);
	t.width = 0; /* better wrapped than cut */
	put_samples(&l, loaded, x);
	if (x->times)
		put_times(&l, x->times, x->wall_ns);
	else
		put_cpu(&l, loaded, x);
	r = put_functions(&l, loaded);
	if (r < 0)
		return r;
	if (x->tasks)
		put_tasks(&l, x->tasks, x->wall_ns);
	put_lost(&l, loaded);
	put_thinned(&l, loaded);
	put_cost(&l, x);
	if (x->is_system_wide)
		put_python_share(&l, loaded);
	if (loaded->ticks)
		put_next(&l, x->output);
	return strbuf_error(&l.text) ? -ENOMEM : !loaded->ticks;
}
