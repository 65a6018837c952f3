/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cmd/account.h"
#include "cmd/load.h"
#include "cmd/ranking.h"
#include "cmd/terminal.h"
#include "collect/source.h"
#include "export/export.h"

#define TOP_FUNCTIONS 5

static void put_samples(struct line *l, const struct load *loaded, const struct summary_extra *x)
{
	size_t processes = x->processes;

	line_put_foreign(l, STYLE_BOLD, x->output, strlen(x->output));
	line_putf(l, STYLE_PLAIN, ": %s %s of %s process%s",
		  x->is_bytes ? units_bytes(loaded->ticks).s : units_count(loaded->ticks).s,
		  x->event ? x->event : "samples", units_count(processes).s,
		  processes == 1 ? "" : "es");
	if (x->contained)
		line_putf(l, STYLE_PLAIN, ", %s in containers", units_count(x->contained).s);
	if (loaded->records != loaded->ticks)
		line_putf(l, STYLE_PLAIN, " (%s records)", units_count(loaded->records).s);
	line_end(l);
	if (!account_cpu_ns(loaded->profile, loaded->ticks))
		return;
	account_put_cpu(l, loaded->profile, loaded->ticks, x->wall_ns);
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

/* As the source counts: samples of events may be worth more than one. */
static uint64_t count_taken(const struct load *loaded, enum sample_source source)
{
	static const char *const counters[] = { "recorded", "task_work_recorded", "carried" };
	char name[COUNTER_NAME_MAX + 1];
	uint64_t sum = 0;

	if (source == SOURCE_TICKS)
		return loaded->ticks;
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", sources[source].prefix, counters[i]);
		sum += profile_counter(loaded->profile, name);
	}
	return sum;
}

static void put_lost(struct line *l, const struct load *loaded)
{
	const char *lead = "lost: ";

	for (int i = 0; i < SOURCE_COUNT_; i++) {
		if (!loss_sum(loaded->profile, sources[i].losses))
			continue;
		line_put(l, STYLE_PLAIN, lead);
		account_put_lost(l, loaded->profile, sources[i].losses, count_taken(loaded, i));
		lead = "; ";
	}
	if (!l->column)
		line_put(l, STYLE_PLAIN, "nothing lost");
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
		  share_text(loaded->ticks, ticks - idle).s);
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
	r = put_functions(&l, loaded);
	if (r < 0)
		return r;
	put_lost(&l, loaded);
	put_cost(&l, x);
	if (x->is_system_wide)
		put_python_share(&l, loaded);
	if (loaded->ticks)
		put_next(&l, x->output);
	return strbuf_error(&l.text) ? -ENOMEM : !loaded->ticks;
}
