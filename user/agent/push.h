/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_PUSH_H
#define AGENT_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/verdict.h"
#include "base/cleanup.h"

/*
 * Sends request bodies to an engine over HTTP/1.1, several at a time. Connections are kept for the
 * next requests, but with output.unanswered: drop, where whoever closed one meanwhile would cost a
 * profile. Tokens are read from their files for each request, certificates when their files have
 * changed; they are kept no longer, and no message holds them.
 */
struct pusher;

#define PUSH_BODY_MAX (4u << 20)       /* uncompressed: Pyroscope's limit for a profile */
#define PUSH_PARCA_MAX (64u << 20)     /* Parca answers 429 beyond */
#define PUSH_PROFILE_SAMPLES_MAX 16000 /* of one profile: Pyroscope */

/* How an engine is spoken to. */
struct dialect {
	const char *path;
	const char *content_type;
	bool is_packed;  /* the bodies that window.h makes: by gzip */
	bool has_series; /* {"series":[...]}: one body may hold those of several */
};
const struct dialect *push_dialect(enum engine engine);

/* config is borrowed. */
int pusher_new(const struct config_output *config, struct pusher **out);

/* Nothing may be under way. */
void pusher_free(struct pusher *p);
DEFINE_CLEANUP(struct pusher *, pusher_free)

struct push_result {
	struct verdict verdict;
	int status;             /* HTTP; 0: none came */
	uint64_t retry_after_s; /* 0: it did not say */
	uint64_t took_ns;
	uint64_t failed_series; /* as verdict_failed_series() has it; 0: it did not say */
	char message[256];      /* for the log: what curl or the engine says; "" if stored */
};

/* May another request begin now? */
bool pusher_has_room(struct pusher *p);

/*
 * Begins a request. body and owner are borrowed until pusher_next() hands owner out. A negative
 * errno with a message where nothing was sent: a file of the configuration cannot be read, -ENOMEM.
 */
int pusher_begin(struct pusher *p, const void *body, size_t len, void *owner);

/* Requests under way. */
size_t pusher_count(const struct pusher *p);

/* Goes on with them, until one is over, pusher_wake() or the time, whichever is first. */
void pusher_wait(struct pusher *p, int timeout_ms);

/* From any thread. */
void pusher_wake(struct pusher *p);

/* The owner of one that is over, and what came of it, network errors included. NULL: none is. */
void *pusher_next(struct pusher *p, struct push_result *out);

/* Those under way are over, as if the engine had been cut off: pusher_next() hands them out. */
void pusher_abort(struct pusher *p);

#endif
