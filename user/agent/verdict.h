/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_VERDICT_H
#define AGENT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"

/*
 * What an engine's answer means: one table, by what Pyroscope 2.2, the Collector 0.159 and Parca
 * 0.28 do. No engine knows a profile again that it has stored: what is sent twice counts twice.
 */
enum action {
	ACTION_STORED,
	ACTION_RETRY,       /* after a pause: it was not stored */
	ACTION_RETRY_A_FEW, /* the same, but it may be the profile's own fault */
	ACTION_DROP,        /* it never will be */
};

#define RETRIES_OF_A_FEW 3

struct verdict {
	enum action action;
	const char *outcome; /* for metrics and logs: "stored", "throttled", ... */
};

struct answer {
	int status;        /* HTTP; 0: none came */
	bool is_sent;      /* the whole request went out */
	bool is_html;      /* a web page */
	bool is_too_large; /* the request is beyond what the engine says it takes */
	bool has_rejected; /* OTLP: the answer says that it took not all */
};

struct verdict verdict_of(enum engine engine, enum unanswered unanswered, const struct answer *a);

/* Every outcome there is, each once, NULL last. */
extern const char *const verdict_outcomes[];

/*
 * Nanoseconds to wait before the attempt after `failures` in a row (>= 1): doubling from 1 s to
 * 5 min, less up to half by `random`, but not less than Retry-After asks for, which is believed up
 * to an hour. retry_after_s 0: it does not say.
 */
uint64_t verdict_pause_ns(uint32_t failures, uint64_t retry_after_s, uint64_t random);

#endif
