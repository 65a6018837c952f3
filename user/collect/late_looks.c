/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/late_looks.h"

#include "base/clock.h"
#include "base/log.h"

#define SILENT_NS NS_PER_SECOND     /* of a look that is blocked */
#define NAMED_EACH_NS NS_PER_SECOND /* a target that makes many hang writes no log full */
#define LOOKED_EACH_NS 250000000ULL /* at the process of one look: some 5 us of CPU time */

static void look_at(struct late_look *late, uint64_t now_ns)
{
	late->is_blocked = workers_is_blocked(late->work, &late->wait);
	late->looked_ns = now_ns;
}

static void look_again(struct late_looks *l, uint64_t now_ns)
{
	for (struct late_look *late = l->items; late < l->items + WORKERS_MAX; late++)
		if (late->work && now_ns - late->looked_ns >= LOOKED_EACH_NS)
			look_at(late, now_ns);
}

bool late_looks_note(struct late_looks *l, const struct work *w, enum look_kind kind,
		     struct look_target target, bool is_charged)
{
	struct late_look *late = l->items;

	while (late < l->items + WORKERS_MAX && late->work)
		late++;
	if (late == l->items + WORKERS_MAX)
		return false; /* there are no more processes than that */
	*late = (struct late_look){
		.work = w, .kind = kind, .target = target, .is_charged = is_charged
	};
	look_at(late, monotonic_ns());
	return late->is_blocked;
}

void late_looks_take(struct late_looks *l, const struct work *w, struct late_look *out)
{
	*out = (struct late_look){ 0 };
	for (struct late_look *late = l->items; late < l->items + WORKERS_MAX; late++) {
		if (late->work != w)
			continue;
		*out = *late;
		late->work = NULL;
	}
}

bool late_looks_has(const struct late_looks *l, pid_t pid)
{
	for (size_t i = 0; i < WORKERS_MAX; i++)
		if (l->items[i].work && l->items[i].target.pid == pid)
			return true;
	return false;
}

bool late_looks_has_any(const struct late_looks *l)
{
	for (size_t i = 0; i < WORKERS_MAX; i++)
		if (l->items[i].work)
			return true;
	return false;
}

size_t late_looks_blocked(struct late_looks *l, uint64_t owner)
{
	size_t count = 0;

	look_again(l, monotonic_ns());
	for (size_t i = 0; i < WORKERS_MAX; i++)
		count += l->items[i].work && l->items[i].is_blocked &&
			 l->items[i].target.owner == owner;
	return count;
}

static void name(const struct look_target *target)
{
	if (target->pid)
		log_warning("pid %d: " WORK_BLOCKED_WORDS, target->pid);
	else
		log_warning("%s: " WORK_BLOCKED_WORDS, target->command);
}

static bool is_silent(const struct late_look *late, uint64_t now_ns)
{
	return late->work && !late->is_named && late->is_blocked &&
	       now_ns - late->wait.since_ns >= SILENT_NS;
}

void late_looks_name(struct late_looks *l, bool is_end)
{
	uint64_t now_ns = monotonic_ns();

	look_again(l, now_ns);
	for (size_t i = 0; i < WORKERS_MAX; i++) {
		if (!is_end && now_ns - l->named_ns < NAMED_EACH_NS)
			return;
		if (!is_silent(&l->items[i], now_ns))
			continue;
		l->items[i].is_named = true;
		l->named_ns = now_ns;
		name(&l->items[i].target);
	}
}
