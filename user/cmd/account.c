/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/account.h"

#include <stdio.h>
#include <string.h>

#include "base/texts.h"
#include "base/units.h"
#include "cmd/figures.h"

#define MOSTLY_WAITS 5 /* less than a fifth of one CPU */

#define TRY_LONGER "pyebpf record with a longer -d, while it works, or with -F 999"
#define TRY_OTHER "pgrep -af python, then pyebpf record -p PID"
#define TRY_PROCESS "pyebpf doctor -p PID, which shows one stack of the process"
#define TRY_DOCTOR "pyebpf doctor, and tell us what it prints: this is a defect of pyebpf"
#define TRY_MODE "pyebpf record without --mode, which shows what it does meanwhile"
#define TRY_FEWER "pyebpf record of fewer processes: -p PID or --cgroup PATH"
#define TRY_RING "pyebpf record with --ring 64MiB"

/* What a tick of the targets, or of anything, was if it was no sample. next: what helps if most of
 * them were this. */
static const struct {
	const char *counter, *words, *next;
} no_sample[] = {
	{ "not_python", "in processes without Python", TRY_OTHER },
	{ "not_asked", "excluded by --mode", TRY_MODE },
	{ "task_work_not_asked", "excluded by --mode (task work)", TRY_MODE },
	{ "thread_state_fault", "on threads whose state was not readable", TRY_PROCESS },
	{ "thread_state_late", "on threads whose state was not found in time", TRY_PROCESS },
	{ "task_work_failed", "on threads whose state was gone", TRY_PROCESS },
	{ "unknown_process", "in processes not identified", TRY_LONGER },
	{ "cpu_left_out", "on CPUs that --cpus leaves out", "pyebpf record without --cpus" },
	{ "no_row", "in processes beyond the table of processes", TRY_FEWER },
	{ "ring_full", "lost in a full ring buffer", TRY_RING },
	{ "task_work_ring_full", "lost in a full ring buffer (task work)", TRY_RING },
	{ "task_work_pending", "on threads still in the kernel at the end", TRY_LONGER },
	{ "no_scratch", "lost: no free scratch buffer", TRY_LONGER },
	{ "task_work_no_scratch", "lost: no free scratch buffer (task work)", TRY_LONGER },
	{ "no_task_work", "on threads in system calls, which were too many", TRY_FEWER },
	{ "malformed", "malformed record (a bug in pyebpf: please report it)", TRY_DOCTOR },
	{ "skipped", "skipped: sampler over its CPU budget", TRY_LONGER },
};

/* Of all sources that count what they have taken, not how long that was. */
static uint64_t sum_counter(const struct profile *p, const char *counter)
{
	uint64_t sum = 0;

	for (int i = 0; i < SOURCE_COUNT_; i++)
		if (sources[i].unit == UNIT_COUNT)
			sum += source_counter(&sources[i], p, counter);
	return sum;
}

int account_put_nothing(struct strbuf *out, const struct profile *p, const char **next)
{
	bool has_ticks = recording_has_counter(profile_recording(p), "ticks");
	uint64_t ticks = 0, most = 0;

	*next = TRY_LONGER;
	for (size_t i = 0; i < sizeof(no_sample) / sizeof(no_sample[0]); i++)
		ticks += sum_counter(p, no_sample[i].counter);
	if (!ticks && profile_recording(p)->source)
		return strbuf_appendf(out, "%s samples without Python code, %s failed or missed",
				      units_count(profile_counter(p, "no_frame")).s,
				      units_count(loss_sum(p, loss_ticks)).s);
	if (!ticks)
		return strbuf_puts(out, !profile_recording(p)->counters.len
						? "the recording is empty"
					: has_ticks ? "no CPU time used"
						    : "no events");
	strbuf_appendf(out, "%s %s%s", units_count(ticks).s, has_ticks ? "tick" : "event",
		       ticks == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(no_sample) / sizeof(no_sample[0]); i++) {
		uint64_t count = sum_counter(p, no_sample[i].counter);

		if (count)
			strbuf_appendf(out, ", %s %s", units_count(count).s, no_sample[i].words);
		if (count > most) {
			most = count;
			*next = no_sample[i].next;
		}
	}
	return strbuf_error(out);
}

void account_put_rows(struct line *l, const struct profile *p, const struct loss_row *rows,
		      uint8_t unit)
{
	const struct value_unit of = { 1, unit };
	const char *comma = "";

	for (; rows->counter; rows++) {
		uint64_t value = profile_counter(p, rows->counter);

		if (!value)
			continue;
		line_putf(l, STYLE_PLAIN, "%s%s %s", comma, rows->words, value_text(value, of).s);
		comma = ", ";
	}
}

uint64_t account_cpu_ns(const struct profile *p, uint64_t ticks)
{
	uint64_t counted = profile_counter(p, "cpu_ns"), sampled;

	if (__builtin_mul_overflow(ticks, profile_recording(p)->interval_ns, &sampled))
		sampled = 0;
	return counted ? counted : sampled;
}

void account_put_cpu(struct line *l, const struct profile *p, uint64_t ticks, uint64_t wall_ns)
{
	uint64_t cpu_ns = account_cpu_ns(p, ticks), counted_ns = profile_counter(p, "cpu_ns");
	uint64_t other_ns = profile_counter(p, "not_python") * profile_recording(p)->interval_ns;

	line_putf(l, STYLE_PLAIN, "%s of CPU time", units_ns(cpu_ns).s);
	if (wall_ns)
		line_putf(l, STYLE_PLAIN, " in %s", units_ns(wall_ns).s);
	if (counted_ns && other_ns)
		line_putf(l, STYLE_PLAIN, ", %s of it without Python", units_ns(other_ns).s);
	if (counted_ns && recording_has_counter(profile_recording(p), "ticks") &&
	    cpu_ns < wall_ns / MOSTLY_WAITS)
		line_put(l, STYLE_PLAIN, ": mostly waiting; use record --mode wall to see why");
}

void account_put_lost(struct line *l, const struct profile *p, const struct loss_row *rows,
		      uint64_t taken, uint8_t unit)
{
	const struct value_unit of = { 1, unit };
	uint64_t lost = loss_sum(p, rows), all = taken + lost;

	line_putf(l, STYLE_PLAIN, "%s of %s (%s): ", value_text(lost, of).s, value_text(all, of).s,
		  share_text(lost, all).s);
	account_put_rows(l, p, rows, unit);
}

uint64_t account_taken(const struct profile *p, enum sample_source source)
{
	const struct source *s = &sources[source];

	if (source != SOURCE_EVENTS)
		return source_counter(s, p, "weight");
	return source_counter(s, p, "recorded") + source_counter(s, p, "task_work_recorded") +
	       source_counter(s, p, "carried");
}

uint64_t account_ticks(const struct profile *p, uint64_t ticks)
{
	uint64_t recorded = profile_counter(p, "weight");

	return recorded ? recorded : ticks;
}

int account_note(const struct profile *p, uint64_t ticks, const char *side, struct texts *notes)
{
	static const struct terminal plain;
	_cleanup_(line_release) struct line lost = LINE_INIT(&plain), quality = LINE_INIT(&plain);
	int r = 0;

	if (loss_sum(p, loss_ticks)) {
		account_put_lost(&lost, p, loss_ticks, account_ticks(p, ticks), UNIT_COUNT);
		r = texts_addf(notes, "%s%s: %s.", side, *side ? " lost" : "Lost",
			       strbuf_str(&lost.text));
	} else if (loss_sum(p, loss_events)) {
		account_put_lost(&lost, p, loss_events, account_taken(p, SOURCE_EVENTS),
				 UNIT_COUNT);
		r = texts_addf(notes, "%s%s of events: %s.", side, *side ? " lost" : "Lost",
			       strbuf_str(&lost.text));
	}
	if (!r && loss_sum(p, loss_quality)) {
		account_put_rows(&quality, p, loss_quality, UNIT_COUNT);
		r = texts_addf(notes, "%s%s %s.", side, *side ? " samples" : "Samples",
			       strbuf_str(&quality.text));
	}
	return strbuf_error(&lost.text) || strbuf_error(&quality.text) ? -ENOMEM : r;
}

struct share_text share_text(uint64_t part, uint64_t whole)
{
	struct share_text t;
	double percent = 100 * (double)part / (double)whole;

	if (part && percent < 0.05)
		snprintf(t.s, sizeof(t.s), "<0.1%%");
	else
		snprintf(t.s, sizeof(t.s), "%.1f%%", percent);
	return t;
}
