/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/look_budget.h"

#include "base/clock.h"

#define MS_NS 1000000ULL

static const struct {
	uint64_t ns, share;
} own[LOOK_KIND_COUNT_] = {
	[LOOK_SEARCH] = { LOOK_OWN_NS, LOOK_OWN_SHARE },
	[LOOK_READ] = { LOOK_OWN_READS_NS, LOOK_OWN_READS_SHARE },
};

static void pass_time(struct look_spending *s, uint64_t now_ns)
{
	if (difference(now_ns, s->since_ns) >= NS_PER_SECOND) {
		s->since_ns = now_ns;
		s->ns = 0;
		s->bytes = 0;
	}
	for (int kind = 0; kind < LOOK_KIND_COUNT_; kind++)
		s->cpu_ns[kind] = difference(s->cpu_ns[kind],
					     difference(now_ns, s->cpu_at_ns) / own[kind].share);
	s->cpu_at_ns = now_ns;
}

static uint64_t spent(const struct look_spending *s)
{
	return s->ns + s->cpu_ns[LOOK_SEARCH] + s->cpu_ns[LOOK_READ];
}

/* Returns the spending of pid in the current second. A new process inherits what was spent in its
 * slot. */
static struct look_spending *spending_of(struct look_budget *b, pid_t pid, uint64_t now_ns)
{
	size_t set = (uint32_t)pid % (LOOK_BUDGET_SLOTS / LOOK_BUDGET_WAYS);
	struct look_spending *ways = &b->slots[set * LOOK_BUDGET_WAYS], *least = ways;

	for (struct look_spending *s = ways; s < ways + LOOK_BUDGET_WAYS; s++) {
		pass_time(s, now_ns);
		if (s->pid == pid)
			return s;
		if (spent(s) < spent(least))
			least = s;
	}
	least->pid = pid;
	least->is_over = false;
	least->grant_ns = 0;
	return least;
}

static void fill_purse(struct look_budget *b, uint64_t now_ns)
{
	int64_t share = difference(now_ns, b->purse_at_ns) / LOOK_PURSE_SHARE;

	if (!b->purse_at_ns || b->purse_ns + share > (int64_t)LOOK_PURSE_NS)
		b->purse_ns = LOOK_PURSE_NS;
	else
		b->purse_ns += share;
	b->purse_at_ns = now_ns;
}

static uint64_t cpu_of(struct look_budget *b, const struct look_spending *s, enum look_kind kind,
		       uint64_t now_ns)
{
	if (s->cpu_ns[kind] + MS_NS <= own[kind].ns)
		return own[kind].ns - s->cpu_ns[kind];
	fill_purse(b, now_ns);
	if (b->purse_ns <= 0 || now_ns < s->rest_ns)
		return 0;
	return s->grant_ns ?: LOOK_GRANT_MIN_NS;
}

uint64_t look_budget_ask(struct look_budget *b, enum look_kind kind, pid_t pid, uint64_t now_ns,
			 size_t bytes, bool *is_first)
{
	struct look_spending *s = spending_of(b, pid, now_ns);
	bool is_over = s->ns >= LOOK_BUDGET_NS || s->bytes + bytes > LOOK_BUDGET_BYTES;
	uint64_t cpu_ns = is_over ? 0 : cpu_of(b, s, kind, now_ns);

	*is_first = !cpu_ns && !s->is_over;
	s->is_over |= !cpu_ns;
	return cpu_ns;
}

void look_budget_spend(struct look_budget *b, enum look_kind kind, pid_t pid, uint64_t now_ns,
		       uint64_t ns, uint64_t cpu_ns, size_t bytes)
{
	struct look_spending *s = spending_of(b, pid, now_ns);
	uint64_t own_ns = difference(own[kind].ns, s->cpu_ns[kind]), grant_ns;

	s->ns += ns;
	s->bytes += bytes;
	s->cpu_ns[kind] += cpu_ns < own_ns ? cpu_ns : own_ns;
	if (cpu_ns <= own_ns)
		return;
	fill_purse(b, now_ns);
	b->purse_ns -= (int64_t)(cpu_ns - own_ns);
	grant_ns = s->grant_ns ?: LOOK_GRANT_MIN_NS / 2;
	if (cpu_ns >= grant_ns && grant_ns < LOOK_GRANT_MAX_NS)
		grant_ns *= 2;
	s->grant_ns = grant_ns;
	s->rest_ns = now_ns + ns + LOOK_REST * cpu_ns;
}
