/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_EVENTS_H
#define COLLECT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/events.h"
#include "profile/kind.h"

/*
 * What `record -e` can name, beside ticks and spans of waiting:
 *
 * page-faults, cycles, ...           perf's own events, by perf's names: event_rows
 * GROUP:NAME[:FIELD]                 a tracepoint of the kernel
 * uprobe:FILE:FUNCTION[:argN]        calls of a function, N from 1
 * usdt:FILE:PROVIDER:NAME[:argN]     a probe that a program or library has in it
 *
 * With FIELD or argN a sample stands for that number, else for one event. What is not above 0 is
 * left out.
 */
struct event {
	enum event_class class;
	enum sample_unit unit;
	uint32_t perf_type; /* EVENT_CLASS_PERF: of perf_event_attr */
	uint64_t perf_config;
	uint32_t freq_hz; /* the kernel finds a period by it; 0: the period is config's */
	char *name;       /* of the kind of its samples */
	char *where;      /* GROUP or FILE; this and what follows is owned, NULL: none */
	char *provider;   /* PROVIDER */
	char *what;       /* NAME or FUNCTION */
	char *field;      /* FIELD */
	struct event_config config;
};

/* Starts as { 0 }, ends in events_release(). Not more than EVENTS_MAX. */
struct event_list {
	struct event *items;
	size_t len, cap;
};

void events_release(struct event_list *list);

/* How often samples are taken, where the event leaves a choice. */
struct event_rate {
	uint64_t
		period; /* one every so many of the event's unit; 0: as it is usual for the event */
	uint32_t freq_hz; /* of clocks and hardware events, unless there is a period */
};

/*
 * Appends the event that the text names. -ENOENT: there is none of this name; -EINVAL: the text is
 * none, -EOVERFLOW: too many; all with a message. Whether this machine has it shows when it is
 * opened (collect/event_links.h).
 */
int events_add(struct event_list *list, const char *text, const struct event_rate *rate);

/* What has a sample taken, of the kind that e->name is. */
static inline const char *event_source(const struct event *e)
{
	return e->class == EVENT_CLASS_MEMORY ? "rss_stat" : e->name;
}

/* Growth of resident memory. 0, -EOVERFLOW or -ENOMEM. */
int events_add_memory(struct event_list *list);

/* Perf's own events. */
struct event_row {
	const char *name, *alias; /* NULL: none */
	uint32_t type;            /* PERF_TYPE_* */
	uint64_t config;
	enum sample_unit unit;
	bool is_sampled; /* too many for a sample each: there is a rate */
	const char *words;
};

extern const struct event_row event_rows[];
extern const size_t event_rows_count;

#endif
