/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/loss.h"

void kinds_release(struct kinds *k)
{
	free(k->name);
	vec_release(&k->roles);
	*k = (struct kinds){ 0 };
}

static const char *name_of(const struct profile *p, size_t kind)
{
	return kind == KIND_TICKS ? KINDS_CPU
				  : strtab_get(p->strings, p->kinds.items[kind - 1].name);
}

static bool has_kind(const struct profile *p, const char *name)
{
	for (size_t i = 1; i <= p->kinds.len; i++)
		if (!strcmp(name_of(p, i), name))
			return true;
	return false;
}

static bool has_ticks(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.len; i++)
		if (p->samples.items[i].kind == KIND_TICKS)
			return true;
	return false;
}

/*
 * Of samples none of which is a tick. What the recording's mode names first is meant, be there none
 * of it as yet: "off-cpu", which also has some of "cpu"; "wall,memory". Else ticks are, where they
 * are recorded: "cpu,memory", "gil".
 */
static char *choose_by_mode(const struct profile *p)
{
	const struct recording *r = &p->recordings.items[p->recordings.len - 1];
	const char *mode = r->mode ? r->mode : "";
	size_t len = strcspn(mode, ",");
	_cleanup_(freep) char *first = strndup(mode, len);

	if (!first || !strcmp(first, KINDS_WALL) || !strcmp(first, KINDS_OFF_CPU))
		return take_ptr(first);
	if (has_kind(p, KINDS_CPU) && has_kind(p, KINDS_OFF_CPU))
		return strdup(KINDS_WALL);
	if (has_kind(p, first))
		return take_ptr(first);
	return strdup(mode[len] || (len && r->interval_ns) ? KINDS_CPU : name_of(p, 1));
}

static char *choose(const struct profile *p)
{
	if (!p->kinds.len || has_ticks(p))
		return strdup(KINDS_CPU);
	return choose_by_mode(p);
}

static bool is_named(const struct kinds *k, const char *name)
{
	if (!strcmp(k->name, KINDS_WALL) &&
	    (!strcmp(name, KINDS_CPU) || !strcmp(name, KINDS_OFF_CPU)))
		return true;
	return !strcmp(k->name, name);
}

static uint8_t role_of(const struct kinds *k, const char *name)
{
	static const struct {
		const char *name;
		uint8_t role;
	} roles[] = { { KINDS_CPU, KIND_IS_CPU },
		      { KINDS_OFF_CPU, KIND_IS_OFF_CPU },
		      { KINDS_GIL, KIND_IS_GIL },
		      { PROFILE_TASK, KIND_IS_TASK } };
	uint8_t role = is_named(k, name) ? KIND_IS_WANTED : 0;

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		role |= strcmp(roles[i].name, name) ? 0 : roles[i].role;
	return role;
}

int kinds_choose(struct kinds *k, const struct profile *p, const char *asked)
{
	int r = 0;

	if (!k->name && (asked || p->samples.len)) {
		k->name = asked ? strdup(asked) : choose(p);
		if (!k->name)
			return -ENOMEM;
		k->is_ns = !strcmp(k->name, KINDS_WALL) ||
			   (!strcmp(k->name, KINDS_CPU) && has_kind(p, KINDS_CPU));
	}
	while (k->name && k->roles.len <= p->kinds.len && !r)
		r = vec_push(&k->roles, role_of(k, name_of(p, k->roles.len)));
	return r;
}

static uint64_t ticks_ns(const struct profile *p, const struct sample *s)
{
	uint32_t process = p->threads.items[s->thread].process;

	return p->recordings.items[p->processes.items[process].recording].interval_ns;
}

uint64_t kinds_scaled(const struct profile *p, const struct sample *s)
{
	uint64_t period =
		s->kind == KIND_TICKS ? ticks_ns(p, s) : p->kinds.items[s->kind - 1].period;
	uint64_t scaled;

	if (!period)
		period = 1;
	return __builtin_mul_overflow(s->value, period, &scaled) ? UINT64_MAX : scaled;
}

uint64_t kinds_value(const struct kinds *k, const struct profile *p, const struct sample *s)
{
	return k->is_ns ? kinds_scaled(p, s) : s->value;
}

bool kinds_is_unknown(const struct kinds *k, const struct profile *p)
{
	if (!k->name || !strcmp(k->name, KINDS_CPU))
		return false;
	if (!strcmp(k->name, KINDS_WALL) && has_kind(p, KINDS_OFF_CPU))
		return false;
	return !has_kind(p, k->name);
}

static void put_events(const struct profile *p, const char *name, struct strbuf *events)
{
	for (size_t i = 1; i <= p->kinds.len; i++) {
		const char *event = strtab_get(p->strings, p->kinds.items[i - 1].event);

		if (!strcmp(name_of(p, i), name))
			strbuf_appendf(events, "%s%s", events->len ? ", " : "",
				       *event ? event : name);
	}
}

/* "cpu-clock, sched_switch": in this order, so that it is the same however they were added. */
static int describe_event(const struct kinds *k, const struct profile *p, struct recording *r)
{
	_cleanup_(strbuf_releasep) struct strbuf events = STRBUF_INIT;
	bool is_wall = !strcmp(k->name, KINDS_WALL);

	if (is_wall && !has_kind(p, KINDS_CPU) && r->event)
		strbuf_puts(&events, r->event);
	put_events(p, is_wall ? KINDS_CPU : k->name, &events);
	if (is_wall) {
		put_events(p, KINDS_OFF_CPU, &events);
		put_events(p, KINDS_WALL, &events);
	}
	return strbuf_error(&events) ? -ENOMEM : recording_set_text(&r->event, strbuf_str(&events));
}

static const struct sample_kind *only_kind(const struct kinds *k, const struct profile *p)
{
	for (size_t i = 1; i <= p->kinds.len; i++)
		if (is_named(k, name_of(p, i)))
			return &p->kinds.items[i - 1];
	return NULL;
}

int kinds_describe(const struct kinds *k, const struct profile *p, struct recording *r)
{
	const struct sample_kind *kind;
	int e;

	if (!p->kinds.len || !k->name || kinds_is_unknown(k, p))
		return 0; /* of none that there is, or nobody has looked at a sample */
	kind = k->is_ns ? NULL : only_kind(k, p);
	e = recording_set_text(&r->mode, k->name);
	if (e || (!kind && !k->is_ns))
		return e; /* ticks */
	if (k->is_ns) {
		r->interval_ns = 1;
	} else {
		r->interval_ns = kind->unit == UNIT_NS ? kind->period : 0;
		r->other_unit = (struct value_unit){ kind->period, kind->unit };
		r->rate_hz = 0;
		if (role_of(k, name_of(p, kind - p->kinds.items + 1)) & ~KIND_IS_WANTED)
			recording_clear_counters(r);
		else
			recording_keep_counters(r, EVENT_COUNTERS);
	}
	return describe_event(k, p, r);
}

const char *kinds_noun(const struct recording *r)
{
	static const struct {
		const char *mode, *noun;
	} nouns[] = { { KINDS_CPU, KINDS_NOUN_CPU }, { KINDS_WALL, "wall time" },
		      { KINDS_OFF_CPU, "waiting" },  { KINDS_GIL, "keeping others waiting" },
		      { PROFILE_TASK, "task time" }, { "memory", "memory" } };
	static const char *const of_units[] = {
		[UNIT_NS] = "time", [UNIT_BYTES] = "memory", [UNIT_COUNT] = "events"
	};

	for (size_t i = 0; r->mode && i < sizeof(nouns) / sizeof(nouns[0]); i++)
		if (!strcmp(r->mode, nouns[i].mode))
			return nouns[i].noun;
	if (!r->other_unit.period)
		return KINDS_NOUN_CPU;
	return of_units[r->other_unit.unit];
}

int kinds_put_words(const struct profile *p, struct strbuf *out)
{
	strbuf_puts(out, KINDS_CPU);
	if (has_kind(p, KINDS_OFF_CPU))
		strbuf_puts(out, ", " KINDS_WALL);
	for (size_t i = 1; i <= p->kinds.len; i++)
		if (strcmp(name_of(p, i), KINDS_CPU) != 0)
			strbuf_appendf(out, ", %s", name_of(p, i));
	return strbuf_error(out);
}

int kinds_put_others(const struct kinds *k, const struct profile *p, struct strbuf *out)
{
	const char *comma = "";

	for (size_t i = 1; i <= p->kinds.len; i++) {
		if (k->name && is_named(k, name_of(p, i)))
			continue;
		strbuf_appendf(out, "%s%s", comma, name_of(p, i));
		comma = ", ";
	}
	return strbuf_error(out);
}
