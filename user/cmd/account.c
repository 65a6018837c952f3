/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/account.h"

#include <stdio.h>

#include "base/units.h"

const struct account_row account_lost[] = {
	{ "ring_full", "ring buffer full" },
	{ "task_work_ring_full", "ring buffer full (task work)" },
	{ "unknown_process", "process not identified yet" },
	{ "thread_state_fault", "thread state not readable" },
	{ "task_work_failed", "thread state gone (task work)" },
	{ "no_scratch", "no work space" },
	{ "not_delivered", "not delivered by the kernel" },
	{ NULL, NULL },
};

const struct account_row account_outside[] = {
	{ "no_frame", "no Python frame on the thread" },
	{ "no_thread_state", "thread without Python state" },
	{ "task_work_outside", "thread without Python state (task work)" },
	{ NULL, NULL },
};

const struct account_row account_quality[] = {
	{ "truncated", "deeper than the frame limit" },
	{ "fault", "cut by a missing page" },
	{ "cut", "without their outermost frames" },
	{ "invalid", "with a broken frame chain" },
	{ "ambiguous", "of one of several thread states" },
	{ "unnamed", "with an unnamed frame" },
	{ NULL, NULL },
};

uint64_t account_sum(const struct profile *p, const struct account_row *rows)
{
	uint64_t sum = 0;

	for (; rows->counter; rows++)
		sum += profile_counter(p, rows->counter);
	return sum;
}

void account_put_rows(struct line *l, const struct profile *p, const struct account_row *rows)
{
	const char *comma = "";

	for (; rows->counter; rows++) {
		uint64_t value = profile_counter(p, rows->counter);

		if (!value)
			continue;
		line_putf(l, STYLE_PLAIN, "%s%s %s", comma, rows->words, units_count(value).s);
		comma = ", ";
	}
}

void account_put_lost(struct line *l, const struct load *loaded)
{
	uint64_t lost = account_sum(loaded->profile, account_lost);
	uint64_t expected = profile_counter(loaded->profile, "expected");
	uint64_t all = loaded->ticks + lost;

	/* Recorders of all processes see ticks that are no samples of ours, and may lose those. */
	if (expected > all)
		all = expected;
	line_putf(l, STYLE_PLAIN, "%s of %s (%s): ", units_count(lost).s, units_count(all).s,
		  share_text(lost, all).s);
	account_put_rows(l, loaded->profile, account_lost);
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
