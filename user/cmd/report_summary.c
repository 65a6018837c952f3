/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/report_summary.h"

#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cmd/account.h"
#include "cmd/breakdown.h"
#include "cmd/figures.h"
#include "cmd/select_opts.h"

#define LABEL_COLUMN 11
#define VERSIONS_SHOWN 4
#define PLACES_SHOWN 4

static void put_label(struct line *l, const char *label)
{
	line_put(l, STYLE_DIM, label);
	line_pad(l, LABEL_COLUMN);
}

static void put_text(struct line *l, const char *before, const char *text)
{
	if (!text || !*text)
		return;
	line_put(l, STYLE_PLAIN, before);
	line_put_foreign(l, STYLE_PLAIN, text, strlen(text));
}

static void put_target(struct line *l, const struct profile *p)
{
	const char *target = profile_recording(p)->target;

	put_label(l, "target");
	put_text(l, "", target ? target : "unknown");
	if (target && !strncmp(target, "pid ", 4) && p->processes.len == 1)
		put_text(l, ": ", strtab_get(p->strings, p->processes.items[0].command_line));
	if (p->recordings.len > 1)
		line_putf(l, STYLE_PLAIN, " (the first of %zu recordings, merged)",
			  p->recordings.len);
}

static void put_origin(struct line *l, const struct recording *m)
{
	time_t seconds = (time_t)(m->start_realtime_ns / 1000000000);
	char text[64] = "at an unknown time";
	struct tm tm;

	if (m->start_realtime_ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	put_label(l, "recorded");
	line_put(l, STYLE_PLAIN, text);
	put_text(l, " on ", m->host);
	put_text(l, ", Linux ", m->kernel);
	put_text(l, " ", m->machine);
	put_text(l, ", by pyebpf ", m->version);
	put_text(l, ", imported from ", m->source);
}

/* "CPython 3.12.4": what versions are told apart by. */
static bool same_version(const struct process *a, const struct process *b)
{
	return a->python_version == b->python_version && a->implementation == b->implementation;
}

static bool is_first_of_version(const struct profile *p, size_t process)
{
	for (size_t i = 0; i < process; i++)
		if (same_version(&p->processes.items[i], &p->processes.items[process]))
			return false;
	return true;
}

static void put_version(struct line *l, const struct profile *p, const struct process *process)
{
	const char *implementation = strtab_get(p->strings, process->implementation);
	const char *version = strtab_get(p->strings, process->python_version);

	/* of another tool's file nobody knows that it is Python */
	if (!*implementation && !*version && profile_recording(p)->source) {
		line_put(l, STYLE_PLAIN, "unknown");
		return;
	}
	put_text(l, "", *implementation ? implementation : "Python");
	put_text(l, " ", *version ? version : "of unknown version");
}

static void put_python(struct line *l, const struct profile *p)
{
	size_t processes = profile_count_processes(p), threads = profile_count_threads(p);
	size_t shown = 0, further = 0;

	put_label(l, "python");
	for (size_t i = 0; i < p->processes.len; i++) {
		if (!is_first_of_version(p, i))
			continue;
		if (shown == VERSIONS_SHOWN) {
			further++;
			continue;
		}
		line_put(l, STYLE_PLAIN, shown++ ? ", " : "");
		put_version(l, p, &p->processes.items[i]);
	}
	if (further)
		line_putf(l, STYLE_PLAIN, " and %zu more", further);
	line_putf(l, STYLE_PLAIN, "%s%s process%s, %s thread%s", shown ? "; " : "",
		  units_count(processes).s, processes == 1 ? "" : "es", units_count(threads).s,
		  threads == 1 ? "" : "s");
}

/* Containers of one pod are one place. */
static bool same_place(const struct process *a, const struct process *b)
{
	return a->pod_uid == b->pod_uid && (a->pod_uid || a->container == b->container);
}

static bool is_first_of_place(const struct profile *p, size_t process)
{
	for (size_t i = 0; i < process; i++)
		if (same_place(&p->processes.items[i], &p->processes.items[process]))
			return false;
	return true;
}

/* Pods and containers; nothing where no process is in any. */
static void put_places(struct line *l, const struct profile *p)
{
	size_t shown = 0, further = 0;

	for (size_t i = 0; i < p->processes.len; i++) {
		if (!process_has_place(&p->processes.items[i]) || !is_first_of_place(p, i))
			continue;
		if (shown == PLACES_SHOWN) {
			further++;
			continue;
		}
		if (!shown)
			put_label(l, "runs in");
		line_put(l, STYLE_PLAIN, shown++ ? ", " : "");
		put_place(l, STYLE_PLAIN, p, &p->processes.items[i]);
	}
	if (further)
		line_putf(l, STYLE_PLAIN, " and %zu more", further);
	if (shown)
		line_end(l);
}

static void put_mode(struct line *l, const struct recording *m)
{
	put_label(l, "mode");
	put_text(l, "", m->mode ? m->mode : "unknown");
	if (!m->mode || !m->event || strcmp(m->mode, m->event) != 0)
		put_text(l, ", ", m->event);
	if (m->rate_hz)
		line_putf(l, STYLE_PLAIN, " at %s Hz", units_hz(m->rate_hz).s);
	if (m->duration_ns)
		line_putf(l, STYLE_PLAIN, ", for %s", units_ns(m->duration_ns).s);
}

static void put_samples(struct line *l, const struct load *loaded)
{
	const struct recording facts = profile_facts(loaded->profile);
	struct value_unit of = recording_value_unit(&facts);

	put_label(l, "samples");
	if (loaded->road.select.query.kind || !value_is_tick(of)) {
		line_put(l, STYLE_PLAIN, units_count(loaded->road.select.sum.count).s);
		if (of.unit != UNIT_COUNT || of.period > 1)
			line_putf(l, STYLE_PLAIN, ": %s", value_text(loaded->all_ticks, of).s);
		return;
	}
	line_put(l, STYLE_PLAIN, units_count(loaded->all_ticks).s);
	if (of.unit == UNIT_NS)
		line_putf(l, STYLE_PLAIN, " of %s each: %s", units_ns(of.period).s,
			  value_text(loaded->all_ticks, of).s);
	if (loaded->records != loaded->all_ticks)
		line_putf(l, STYLE_PLAIN,
			  " (%s records: a record also counts the samples skipped before it)",
			  units_count(loaded->records).s);
}

static void put_others(struct line *l, const struct load *loaded)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	put_label(l, "besides");
	if (select_put_others(&loaded->road.select, loaded->profile, &text) == 0)
		line_put_foreign(l, STYLE_PLAIN, strbuf_str(&text), text.len);
	line_end(l);
}

static void put_selected(struct line *l, const struct load *loaded)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	put_label(l, "selected");
	if (select_put_sum(&loaded->road.select.query, &loaded->road.select.sum,
			   recording_value_unit(profile_recording(loaded->profile)), &text) == 0)
		line_put_foreign(l, STYLE_PLAIN, strbuf_str(&text), text.len);
	line_end(l);
}

static void put_cpu(struct line *l, const struct load *loaded)
{
	const struct profile *p = loaded->profile;
	const struct recording facts = profile_facts(p);

	if (strcmp(kinds_noun(&facts), KINDS_NOUN_CPU) != 0 ||
	    !account_cpu_ns(p, loaded->all_ticks) || loaded->road.select.query.has_range ||
	    loaded->road.select.query.kind)
		return;
	put_label(l, "time");
	account_put_cpu(l, p, loaded->all_ticks, facts.duration_ns);
	line_end(l);
}

static void put_idle(struct line *l, const struct load *loaded)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;

	put_label(l, "left out");
	if (select_put_idle(&loaded->road.select, &text) == 0)
		line_putf(l, STYLE_PLAIN, "as idle: %s", strbuf_str(&text));
	line_end(l);
}

/* Where time off the CPU was recorded: the threads' lives. */
static void put_wall(struct line *l, const struct load *loaded)
{
	uint64_t wall_ns = breakdown_wall_ns(loaded);
	uint64_t gil_ns = (uint64_t)loaded->gil.waited_ns;
	uint64_t duration_ns = profile_facts(loaded->profile).duration_ns;
	size_t threads = profile_count_threads(loaded->profile);

	put_label(l, "time");
	line_putf(l, STYLE_PLAIN, "%s of %s thread%s", units_ns(wall_ns).s, units_count(threads).s,
		  threads == 1 ? "" : "s");
	if (duration_ns)
		line_putf(l, STYLE_PLAIN, " in %s", units_ns(duration_ns).s);
	line_put(l, STYLE_PLAIN, ": ");
	breakdown_put_all(l, loaded);
	line_end(l);
	if (!gil_ns)
		return;
	put_label(l, "GIL");
	line_putf(l, STYLE_PLAIN, "%s spent waiting (%s); use --gil to see who held it",
		  units_ns(gil_ns).s, share_text(gil_ns, wall_ns).s);
	line_end(l);
}

/* What a file has of a recording, where it was cut out of it. */
static bool put_part(struct line *l, const struct recording *m)
{
	if (!m->part)
		return false;
	put_label(l, "part");
	put_text(l, "", m->part);
	line_put(l, STYLE_PLAIN,
		 "; \"lost\", \"outside\" and \"quality\" describe the complete recording, not "
		 "this part");
	return true;
}

static void put_work(struct line *l, const struct load *loaded)
{
	const struct recording facts = profile_facts(loaded->profile), *m = &facts;
	double each_ns = (double)loaded->all_ticks * (double)m->interval_ns / m->work;

	put_label(l, "work");
	line_putf(l, STYLE_PLAIN, "%.15g units", m->work);
	if (each_ns >= 1 && each_ns < 1e18)
		line_putf(l, STYLE_PLAIN, " of %s each", units_ns((uint64_t)each_ns).s);
}

static void put_lost(struct line *l, const struct load *loaded)
{
	static const char *const words[SOURCE_COUNT_] = {
		[SOURCE_TICKS] = "",
		[SOURCE_SWITCHES] = "of waiting: ",
		[SOURCE_EVENTS] = "of events: ",
	};
	const struct profile *p = loaded->profile;
	bool is_known = false, has_lost = false;
	uint64_t taken;

	put_label(l, "lost");
	for (int i = 0; i < SOURCE_COUNT_; i++) {
		is_known = is_known || loss_is_known(p, sources[i].losses);
		if (!loss_sum(p, sources[i].losses))
			continue;
		taken = i == SOURCE_TICKS ? account_ticks(p, load_samples(loaded))
					  : account_taken(p, i);
		line_putf(l, STYLE_PLAIN, "%s%s", has_lost ? "; " : "", words[i]);
		account_put_lost(l, p, sources[i].losses, taken, sources[i].unit);
		has_lost = true;
	}
	if (!has_lost)
		line_put(l, STYLE_PLAIN, is_known ? "nothing" : "unknown");
	line_end(l);
}

static void put_account(struct line *l, const struct load *loaded)
{
	const struct profile *p = loaded->profile;

	put_lost(l, loaded);
	if (profile_counter(p, "outside")) {
		put_label(l, "outside");
		line_putf(l, STYLE_PLAIN,
			  "Python: %s samples (native threads, interpreter start and exit)",
			  units_count(profile_counter(p, "outside")).s);
		line_end(l);
	}
	if (loss_sum(p, loss_quality)) {
		put_label(l, "quality");
		line_put(l, STYLE_PLAIN, "samples ");
		account_put_rows(l, p, loss_quality, UNIT_COUNT);
		line_end(l);
	}
	if (loaded->is_cut) {
		put_label(l, "note");
		line_put(l, STYLE_PLAIN,
			 "a file is truncated or damaged: showing the readable part");
		line_end(l);
	}
}

int report_summary_put(const struct load *loaded, struct terminal t)
{
	_cleanup_(line_release) struct line l = LINE_INIT(&t);
	const struct recording facts = profile_facts(loaded->profile);

	t.width = 0; /* better wrapped than cut */
	put_target(&l, loaded->profile);
	line_end(&l);
	put_origin(&l, &facts);
	line_end(&l);
	put_python(&l, loaded->profile);
	line_end(&l);
	put_places(&l, loaded->profile);
	put_mode(&l, &facts);
	line_end(&l);
	if (put_part(&l, &facts))
		line_end(&l);
	put_samples(&l, loaded);
	line_end(&l);
	if (select_has_others(&loaded->road.select))
		put_others(&l, loaded);
	if (select_is_active(&loaded->road.select.query))
		put_selected(&l, loaded);
	if (loaded->road.select.query.leaves_idle_out)
		put_idle(&l, loaded);
	if (breakdown_is_known(loaded))
		put_wall(&l, loaded);
	else
		put_cpu(&l, loaded);
	if (facts.work > 0) {
		put_work(&l, loaded);
		line_end(&l);
	}
	put_account(&l, loaded);
	return line_end(&l);
}
