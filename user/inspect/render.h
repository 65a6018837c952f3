/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_RENDER_H
#define INSPECT_RENDER_H

/*
 * Objects of a process as text, much as repr() would write them, from its memory alone: no code of
 * the process runs. Bounded in depth, entries, bytes and reads, whatever lies there. What is left
 * out is told by "...", and by "...+N" where N more characters, digits or entries are known of. The
 * text is UTF-8 without controls of any kind: a terminal may have it as it is.
 *
 * Where it is not what repr() gives:
 *  - objects of classes whose repr() is written in Python: <Name attribute=value ...>, of the
 *    instance alone, and inside of another such object <Name at 0x...>
 *  - subclasses of builtin types: Name([1, 2]), as what they hold is no secret of their repr()
 *  - sets, Counter: in the order of their table
 *  - values behind names of secrets: <masked str>
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "target/object.h"

#define RENDER_DEPTH_MAX 16

/* How much of a value is shown. */
struct render_limits {
	uint32_t depth;   /* of containers in containers, <= RENDER_DEPTH_MAX */
	uint32_t objects; /* of objects with attributes in such objects */
	uint32_t entries; /* of a container */
	uint32_t chars;   /* of a str, bytes, of an int's digits; of those in containers: half */
	uint32_t bytes;   /* of the whole; what has begun there is ended */
	uint32_t reads;   /* of memory */
};
extern const struct render_limits render_short, render_full;

struct render_options {
	const struct render_limits *limits;
	bool has_secrets; /* values behind names of secrets are shown, too */
	bool is_flat;     /* attributes of the object itself are not shown */
};

/*
 * Appends the object at an address. Something is appended in any case: "<unreadable>" for what is
 * not there or none. The reader's reads_left goes down by what it took. 0 or -ENOMEM.
 */
int render_object(struct object_reader *r, uint64_t object, const struct render_options *options,
		  struct strbuf *out);

/* The same of the value of a variable of this name (a str, or 0): masked where that is a secret. */
int render_named(struct object_reader *r, uint64_t name, uint64_t object,
		 const struct render_options *options, struct strbuf *out);

/* Appends the name of an object's type: "str", "collections.deque", "Request"; or "?". */
int render_type(struct object_reader *r, uint64_t object, struct strbuf *out);

/* Appends a str that is a name, without quotes; "?" if it cannot be read. */
int render_name(struct object_reader *r, uint64_t str, struct strbuf *out);

#endif
