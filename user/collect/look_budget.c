/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/look_budget.h"

#include "base/clock.h"

/* Of the second that now is in. */
static struct look_spending *spending_of(struct look_budget *b, pid_t pid, uint64_t now_ns)
{
	struct look_spending *s = &b->slots[(uint32_t)pid & (LOOK_BUDGET_SLOTS - 1)];

	if (s->pid != pid)
		*s = (struct look_spending){ .pid = pid, .since_ns = now_ns };
	if (now_ns - s->since_ns >= NS_PER_SECOND) {
		s->since_ns = now_ns;
		s->ns = 0;
		s->bytes = 0;
	}
	return s;
}

bool look_budget_allows(struct look_budget *b, pid_t pid, uint64_t now_ns, size_t bytes,
			bool *is_first)
{
	struct look_spending *s = spending_of(b, pid, now_ns);
	bool is_over = s->ns >= LOOK_BUDGET_NS || s->bytes + bytes > LOOK_BUDGET_BYTES;

	*is_first = is_over && !s->is_over;
	s->is_over |= is_over;
	return !is_over;
}

void look_budget_spend(struct look_budget *b, pid_t pid, uint64_t now_ns, uint64_t ns, size_t bytes)
{
	struct look_spending *s = spending_of(b, pid, now_ns);

	s->ns += ns;
	s->bytes += bytes;
}
