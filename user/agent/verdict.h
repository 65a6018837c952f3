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
	const char *text;  /* of the answer; NULL: none */
};

struct verdict verdict_of(enum engine engine, enum unanswered unanswered, const struct answer *a);

/*
 * Which series of a request with several were not stored, a bit each: 64 at most. 0: the answer
 * does not say, so none was, or all were. Pyroscope stores the others of a request that fails.
 */
uint64_t verdict_failed_series(enum engine engine, const struct answer *a);

/* Every outcome there is, each once, NULL last. */
extern const char *const verdict_outcomes[];

/*
 * Nanoseconds to wait before the attempt after `failures` in a row (>= 1): doubling from 1 s to
 * 5 min, less up to half by `random`, but not less than asked_ns, what Retry-After says.
 */
uint64_t verdict_pause_ns(uint32_t failures, uint64_t asked_ns, uint64_t random);

/*
 * What is believed of a Retry-After: a quarter of the age that entries of the spool may have, an
 * hour at most. 0: it does not say.
 */
uint64_t verdict_asked_ns(uint64_t retry_after_s, uint64_t age_max_ns);

#endif
