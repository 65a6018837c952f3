/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/governor.h"
#include "agent/push.h"
#include "agent/spool.h"
#include "agent/window.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "collect/pipeline.h"
#include "collect/session.h"
#include "collect/usage.h"
#include "profile/profile.h"

/*
 * What the agent counts since the process began, for Prometheus, and the state that probes ask for.
 * All functions may be called by several threads.
 */
struct metrics;

int metrics_new(struct metrics **out);
void metrics_free(struct metrics *m);
DEFINE_CLEANUP(struct metrics *, metrics_free)

/* A window is over: p's counters are of it alone. NULL stats: it went to a file, of `samples`. */
int metrics_add_window(struct metrics *m, const struct profile *p, const struct window_stats *w);

/*
 * What is counted of one output. Those of a name are the same for ever, so that a counter does not
 * begin anew at a reload; name as in struct config_output, NULL too. Borrowed. 0 or -ENOMEM.
 */
struct metrics_output;
int metrics_get_output(struct metrics *m, const char *name, struct metrics_output **out);

/* What came of the samples of a request; others wait in the spool. */
struct push_samples {
	uint64_t stored, dropped;
};
void metrics_add_push(struct metrics_output *o, const struct push_result *r, size_t bytes,
		      const struct push_samples *samples);
void metrics_set_in_flight(struct metrics_output *o, size_t requests);

/* rate_hz: of ticks. */
void metrics_set_governor(struct metrics *m, uint64_t rate_hz, const struct governor *g,
			  bool has_changed);
void metrics_add_reload(struct metrics *m, bool is_good);

/* Names of pods were asked for; so many are known. */
void metrics_add_refresh(struct metrics *m, bool is_good);
void metrics_set_pods(struct metrics *m, size_t pods);

/* How full the maps of the BPF programs are (entries), and the agent's own tables (bytes). */
#define METRICS_TABLES (PIPELINE_USAGES + 1)
void metrics_set_usage(struct metrics *m, const struct usage maps[SESSION_USAGES],
		       const struct usage tables[METRICS_TABLES]);

/* Borrowed, NULL: there is none, until another is set or it is forgotten. Its losses stay counted.
 */
void metrics_set_spool(struct metrics_output *o, struct spool *s);
void metrics_forget_spool(struct metrics_output *o,
			  const struct spool *s); /* nothing for another */

/* The recorder is alive; it samples. */
void metrics_beat(struct metrics *m);
void metrics_set_ready(struct metrics *m, bool is_ready);

/* It has given sign of life in the last minute. */
bool metrics_is_alive(struct metrics *m);
bool metrics_is_ready(struct metrics *m);

/* Prometheus' text format 0.0.4. 0 or -ENOMEM. */
int metrics_print(struct metrics *m, struct strbuf *out);

/* Serves /metrics, /healthz and /readyz in a thread of its own, until metrics_close(). */
struct metrics_server;
int metrics_serve(struct metrics *m, const struct config *c, struct metrics_server **out);
void metrics_close(struct metrics_server *s);
DEFINE_CLEANUP(struct metrics_server *, metrics_close)

#endif
