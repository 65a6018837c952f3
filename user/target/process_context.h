/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_PROCESS_CONTEXT_H
#define TARGET_PROCESS_CONTEXT_H

/*
 * What a process says of itself to readers outside: resource attributes of OpenTelemetry, by
 * OTEP 4719 (oteps/profiles/4719-process-ctx.md, version 2 of its header): a mapping of a known
 * name, with a header that points to a protobuf message. Anybody may publish anything so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

#define PROCESS_CONTEXT_BYTES_MAX 65536   /* of the message */
#define PROCESS_CONTEXT_ATTRIBUTES_MAX 48 /* of a process; more are left out */
#define PROCESS_CONTEXT_TEXT_MAX 256      /* bytes of a name or a value; longer: cut */
#define PROCESS_CONTEXT_KEYS_MAX 256      /* a key is a byte */

struct process_attribute {
	char *name, *value; /* owned, valid UTF-8; the name is not "" */
};

/* Starts as { 0 }, ends in process_context_release(). */
struct process_context {
	uint64_t published_ns; /* CLOCK_BOOTTIME; with another one it is another context */
	VEC(struct process_attribute) attributes;
	VEC(char *) keys; /* of attributes of threads, OTEP 4947, by number; owned, valid UTF-8 */
	bool has_threads; /* threads publish theirs, as bpf/thread_context.h reads it */
};

void process_context_release(struct process_context *c);

/*
 * Of a process: 0; -ENOENT: it publishes none, or not now, -EBADMSG: none that is understood,
 * -ENOMEM, or as maps_open() and mem_read(); without a message of its own.
 */
int process_context_read(pid_t pid, struct process_context *out);

/* The message alone. 0, -EBADMSG or -ENOMEM. */
int process_context_parse(const void *bytes, size_t len, struct process_context *out);

#endif
