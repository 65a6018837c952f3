/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_EVENT_LINKS_H
#define COLLECT_EVENT_LINKS_H

#include "base/cleanup.h"
#include "collect/events.h"

/*
 * The events of a session, and the programs that they run. Perf's own are opened on each CPU that
 * is online, all others once for all CPUs.
 */
struct event_links;
struct pyebpf;

/*
 * Looks up what this machine has to say of the events: where fields of tracepoints are, whether a
 * file has a function. -EINVAL: it has none of that name, -EOPNOTSUPP, -EPERM; with a message.
 */
int events_resolve(struct event_list *events);

/* Can this machine open the event? 0, or what perf_event_open() says. */
int events_probe(const struct event_row *row);

/* Before the programs are loaded: only those that the events need are, configured for them. */
int event_links_configure(struct pyebpf *skel, const struct event_list *events, int cpus);

/* Opens all. The list and the programs are borrowed. Errors as of events_resolve(). */
int event_links_new(struct pyebpf *skel, const struct event_list *events, int cpus,
		    struct event_links **out);
void event_links_free(struct event_links *l);
DEFINE_CLEANUP(struct event_links *, event_links_free)

/* Perf's own events, on CPUs that have come online since. 0, or a negative errno with a message. */
int event_links_follow_cpus(struct event_links *l);

#endif
