/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/look_budget.h"

#include "base/clock.h"

#define MS_NS 1000000ULL

struct limit {
	uint64_t ns, share;
};

static const struct limit limits_of_target[LOOK_KIND_COUNT_] = {
	[LOOK_SEARCH] = { LOOK_OWN_NS, LOOK_OWN_SHARE },
	[LOOK_READ] = { LOOK_OWN_READS_NS, LOOK_OWN_READS_SHARE },
};

static const struct limit limits_of_owner[LOOK_KIND_COUNT_] = {
	[LOOK_SEARCH] = { LOOK_OWNER_NS, LOOK_OWNER_SHARE },
	[LOOK_READ] = { LOOK_OWNER_READS_NS, LOOK_OWNER_READS_SHARE },
};

/* An owner that has spent more is of the crowd, which shares that part of a CPU. */
static const struct limit limits_of_crowd[LOOK_KIND_COUNT_] = {
	[LOOK_SEARCH] = { LOOK_CROWD_NS, LOOK_CROWD_SHARE },
	[LOOK_READ] = { LOOK_CROWD_READS_NS, LOOK_CROWD_READS_SHARE },
};

/* --- accounts --------------------------------------------------------------------------------- */

static void pass_time(struct look_account *a, const struct limit *limits, uint64_t now_ns)
{
	if (difference(now_ns, a->since_ns) >= NS_PER_SECOND) {
		a->since_ns = now_ns;
		a->ns = 0;
		a->bytes = 0;
	}
	for (int kind = 0; kind < LOOK_KIND_COUNT_; kind++)
		a->cpu_ns[kind] = difference(a->cpu_ns[kind],
					     difference(now_ns, a->cpu_at_ns) / limits[kind].share);
	a->cpu_at_ns = now_ns;
}

static uint64_t spent(const struct look_account *a)
{
	return a->ns + a->cpu_ns[LOOK_SEARCH] + a->cpu_ns[LOOK_READ];
}

/* The index of an account. A new one inherits what was spent in its place: *is_new. */
static size_t find_account(struct look_account *accounts, size_t count, const struct limit *limits,
			   uint64_t id, uint64_t now_ns, bool *is_new)
{
	size_t first = id % (count / LOOK_BUDGET_WAYS) * LOOK_BUDGET_WAYS, least = first;

	*is_new = false;
	for (size_t i = first; i < first + LOOK_BUDGET_WAYS; i++) {
		pass_time(&accounts[i], limits, now_ns);
		if (accounts[i].id == id)
			return i;
		if (spent(&accounts[i]) < spent(&accounts[least]))
			least = i;
	}
	*is_new = true;
	accounts[least].id = id;
	accounts[least].is_over = false;
	return least;
}

static uint64_t left_of(const struct look_account *a, const struct limit *limits,
			enum look_kind kind)
{
	return difference(limits[kind].ns, a->cpu_ns[kind]);
}

/* --- those of one look ------------------------------------------------------------------------ */

struct accounts {
	struct look_account *target, *owner;
	struct look_grants *grants;
	struct look_purse *purse;
	uint64_t own_ns; /* CPU time that both have */
};

static void fill_purse(struct look_purse *p, uint64_t now_ns, uint32_t crowd)
{
	int64_t share = difference(now_ns, p->at_ns) / (LOOK_PURSE_SHARE * crowd);

	if (!p->at_ns || p->ns + share > (int64_t)LOOK_PURSE_NS)
		p->ns = LOOK_PURSE_NS;
	else
		p->ns += share;
	p->at_ns = now_ns;
}

/* An owner's limits, beside so many who take much. */
static void limits_in_crowds(const uint32_t crowds[LOOK_KIND_COUNT_],
			     struct limit out[LOOK_KIND_COUNT_])
{
	for (int kind = 0; kind < LOOK_KIND_COUNT_; kind++) {
		out[kind] = limits_of_owner[kind];
		if (crowds[kind] > 1)
			out[kind].share = limits_of_crowd[kind].share * crowds[kind];
	}
}

static void count_crowds(struct look_budget *b, uint64_t now_ns)
{
	struct limit limits[LOOK_KIND_COUNT_];
	uint32_t counts[LOOK_KIND_COUNT_] = { 0 };

	if (b->counted_ns && difference(now_ns, b->counted_ns) < LOOK_CROWD_COUNT_NS)
		return;
	limits_in_crowds(b->crowds, limits);
	for (size_t i = 0; i < LOOK_OWNER_SLOTS; i++) {
		if (!b->owners[i].id)
			continue;
		pass_time(&b->owners[i], limits, now_ns);
		for (int kind = 0; kind < LOOK_KIND_COUNT_; kind++)
			counts[kind] += b->owners[i].cpu_ns[kind] > limits_of_crowd[kind].ns;
	}
	for (int kind = 0; kind < LOOK_KIND_COUNT_; kind++)
		b->crowds[kind] = counts[kind] > LOOK_CROWD_MAX ? LOOK_CROWD_MAX : counts[kind];
	b->counted_ns = now_ns;
}

/* Both kinds are paid for out of a purse. */
static uint32_t greatest_crowd(const uint32_t crowds[LOOK_KIND_COUNT_])
{
	uint32_t most =
		crowds[LOOK_SEARCH] > crowds[LOOK_READ] ? crowds[LOOK_SEARCH] : crowds[LOOK_READ];

	return most ?: 1;
}

static struct accounts accounts_of(struct look_budget *b, enum look_kind kind,
				   struct look_target target, uint64_t now_ns)
{
	bool is_new;
	size_t t = find_account(b->targets, LOOK_BUDGET_SLOTS, limits_of_target,
				(uint32_t)target.pid, now_ns, &is_new),
	       o;
	struct accounts a = { .target = &b->targets[t], .grants = &b->grants[t] };
	uint64_t own_ns = left_of(a.target, limits_of_target, kind), owner_ns;
	struct limit limits[LOOK_KIND_COUNT_];

	count_crowds(b, now_ns);
	limits_in_crowds(b->crowds, limits);
	if (is_new)
		a.grants->grant_ns = 0;
	o = find_account(b->owners, LOOK_OWNER_SLOTS, limits, target.owner, now_ns, &is_new);
	a.owner = &b->owners[o];
	a.purse = &b->purses[o];
	fill_purse(a.purse, now_ns, greatest_crowd(b->crowds));
	owner_ns = left_of(a.owner, limits, kind);
	a.own_ns = own_ns < owner_ns ? own_ns : owner_ns;
	return a;
}

static uint64_t cpu_of(const struct accounts *a, uint64_t now_ns)
{
	if (a->own_ns >= MS_NS)
		return a->own_ns;
	if (a->purse->ns <= 0 || now_ns < a->grants->rest_ns)
		return 0;
	return a->grants->grant_ns ?: LOOK_GRANT_MIN_NS;
}

uint64_t look_budget_ask(struct look_budget *b, enum look_kind kind, struct look_target target,
			 uint64_t now_ns, size_t bytes, bool *is_first)
{
	struct accounts a = accounts_of(b, kind, target, now_ns);
	bool is_over = a.target->ns >= LOOK_BUDGET_NS || a.owner->ns >= LOOK_BUDGET_NS ||
		       a.target->bytes + bytes > LOOK_BUDGET_BYTES;
	uint64_t cpu_ns = is_over ? 0 : cpu_of(&a, now_ns);

	*is_first = !cpu_ns && !a.target->is_over;
	a.target->is_over |= !cpu_ns;
	return cpu_ns;
}

static void take_from_purse(struct accounts *a, uint64_t now_ns, const struct look_cost *cost,
			    uint64_t own_ns)
{
	uint64_t grant_ns = a->grants->grant_ns ?: LOOK_GRANT_MIN_NS / 2;

	a->purse->ns -= (int64_t)(cost->cpu_ns - own_ns);
	if (cost->cpu_ns >= grant_ns && grant_ns < LOOK_GRANT_MAX_NS)
		grant_ns *= 2;
	a->grants->grant_ns = grant_ns;
	a->grants->rest_ns = now_ns + cost->ns + LOOK_REST * cost->cpu_ns;
}

void look_budget_spend(struct look_budget *b, enum look_kind kind, struct look_target target,
		       uint64_t now_ns, const struct look_cost *cost)
{
	struct accounts a = accounts_of(b, kind, target, now_ns);
	uint64_t own_ns = cost->cpu_ns < a.own_ns ? cost->cpu_ns : a.own_ns;

	a.target->ns += cost->ns;
	a.target->bytes += cost->bytes;
	a.target->cpu_ns[kind] += own_ns;
	a.owner->ns += cost->asleep_ns;
	a.owner->cpu_ns[kind] += own_ns;
	if (cost->cpu_ns > own_ns)
		take_from_purse(&a, now_ns, cost, own_ns);
}
