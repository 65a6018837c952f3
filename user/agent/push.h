/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_PUSH_H
#define AGENT_PUSH_H

#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/verdict.h"
#include "base/cleanup.h"

/*
 * Sends request bodies to an engine over HTTP/1.1, one at a time, the connection kept. Tokens and
 * certificates are read from their files for each request, so that they may be renewed; they are
 * kept no longer, and no message holds them.
 */
struct pusher;

#define PUSH_BODY_MAX (4u << 20)       /* uncompressed: Pyroscope's limit for a profile */
#define PUSH_PARCA_MAX (64u << 20)     /* Parca answers 429 beyond */
#define PUSH_PROFILE_SAMPLES_MAX 16000 /* of one profile: Pyroscope */

/* config is borrowed. */
int pusher_new(const struct config *config, struct pusher **out);
void pusher_free(struct pusher *p);
DEFINE_CLEANUP(struct pusher *, pusher_free)

struct push_result {
	struct verdict verdict;
	int status;             /* HTTP; 0: none came */
	uint64_t retry_after_s; /* 0: it did not say */
	uint64_t took_ns;
	char message[256]; /* for the log: what curl or the engine says; "" if stored */
};

/*
 * 0: *out tells what came of it, network errors included. A negative errno with a message where
 * nothing was sent: a file of the configuration cannot be read, -ENOMEM.
 */
int pusher_send(struct pusher *p, const void *body, size_t len, struct push_result *out);

#endif
