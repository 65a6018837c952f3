/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/process_context.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "target/maps.h"
#include "target/mem.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION 2
#define READS_MAX 3 /* of one that is being written */
#define SCHEMA_KEY "threadlocal.schema_version"
#define KEYS_KEY "threadlocal.attribute_key_map"

/* The mapping's first bytes. */
struct header {
	char signature[8];
	uint32_t version;
	uint32_t payload_bytes;
	uint64_t published_ns; /* 0: it is being written */
	uint64_t payload;      /* address */
};

void process_context_release(struct process_context *c)
{
	for (size_t i = 0; i < c->attributes.len; i++) {
		free(c->attributes.items[i].name);
		free(c->attributes.items[i].value);
	}
	for (size_t i = 0; i < c->keys.len; i++)
		free(c->keys.items[i]);
	vec_release(&c->attributes);
	vec_release(&c->keys);
	*c = (struct process_context){ 0 };
}

/* --- protobuf ---------------------------------------------------------------------------------
 *
 * By hand, as the message nests without a limit and libraries follow it: here each level is a
 * function. Field numbers: opentelemetry-proto, common/v1, resource/v1, processcontext/v1.
 */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum {
	CONTEXT_RESOURCE = 1,
	CONTEXT_ATTRIBUTES = 2,
	RESOURCE_ATTRIBUTES = 1,
	PAIR_KEY = 1,
	PAIR_VALUE = 2,
	VALUE_STRING = 1,
	VALUE_BOOL = 2,
	VALUE_INT = 3,
	VALUE_DOUBLE = 4,
	VALUE_ARRAY = 5,
	ARRAY_VALUES = 1,
};

struct span {
	const uint8_t *p, *end;
};

struct field {
	uint64_t number;
	enum wire wire;
	uint64_t value;    /* of numbers */
	struct span bytes; /* WIRE_BYTES */
};

static int read_fixed(struct span *s, size_t bytes, uint64_t *value)
{
	if ((size_t)(s->end - s->p) < bytes)
		return -EBADMSG;
	*value = 0;
	memcpy(value, s->p, bytes);
	s->p += bytes;
	return 0;
}

/* 1 and the next field, 0 at the end, -EBADMSG. */
static int next_field(struct span *s, struct field *f)
{
	uint64_t tag;

	if (s->p == s->end)
		return 0;
	if (varint_get(&s->p, s->end, &tag) < 0)
		return -EBADMSG;
	*f = (struct field){ .number = tag >> 3, .wire = (enum wire)(tag & 7) };
	switch (f->wire) {
	case WIRE_VARINT:
		return varint_get(&s->p, s->end, &f->value) < 0 ? -EBADMSG : 1;
	case WIRE_64:
		return read_fixed(s, 8, &f->value) < 0 ? -EBADMSG : 1;
	case WIRE_32:
		return read_fixed(s, 4, &f->value) < 0 ? -EBADMSG : 1;
	case WIRE_BYTES:
		if (varint_get(&s->p, s->end, &f->value) < 0 ||
		    f->value > (uint64_t)(s->end - s->p))
			return -EBADMSG;
		f->bytes = (struct span){ s->p, s->p + f->value };
		s->p += f->value;
		return 1;
	default:
		return -EBADMSG;
	}
}

static bool is_text(const struct span *s, const char *text)
{
	return (size_t)(s->end - s->p) == strlen(text) &&
	       !memcmp(s->p, text, (size_t)(s->end - s->p));
}

/* Whole characters of it, what is none replaced; NULL: out of memory. */
static char *copy_text(const struct span *s)
{
	char text[PROCESS_CONTEXT_TEXT_MAX];
	size_t n = utf8_copy((const char *)s->p, (size_t)(s->end - s->p), text,
			     PROCESS_CONTEXT_TEXT_MAX);

	return strndup(text, n);
}

/* An AnyValue as text: 1; 0: it is none that is told; else a negative errno. */
static int value_text(struct span value, char **out)
{
	char *text = NULL;
	struct field f;
	double number;
	int r;

	while ((r = next_field(&value, &f)) > 0) {
		char *last = text;

		if (f.number == VALUE_STRING && f.wire == WIRE_BYTES) {
			text = copy_text(&f.bytes);
		} else if (f.number == VALUE_BOOL && f.wire == WIRE_VARINT) {
			text = strdup(f.value ? "true" : "false");
		} else if (f.number == VALUE_INT && f.wire == WIRE_VARINT) {
			if (asprintf(&text, "%" PRId64, (int64_t)f.value) < 0)
				text = NULL;
		} else if (f.number == VALUE_DOUBLE && f.wire == WIRE_64) {
			memcpy(&number, &f.value, sizeof(number));
			if (asprintf(&text, "%.17g", number) < 0)
				text = NULL;
		} else {
			continue;
		}
		free(last);
		if (!text)
			return -ENOMEM;
	}
	if (r < 0) {
		free(text);
		return r;
	}
	*out = text;
	return text != NULL;
}

/* A KeyValue, taken apart. */
static int read_pair(struct span pair, struct span *key, struct span *value)
{
	struct field f;
	int r;

	*key = *value = (struct span){ pair.end, pair.end };
	while ((r = next_field(&pair, &f)) > 0) {
		if (f.wire != WIRE_BYTES)
			continue;
		if (f.number == PAIR_KEY)
			*key = f.bytes;
		else if (f.number == PAIR_VALUE)
			*value = f.bytes;
	}
	return r;
}

static int add_attribute(struct process_context *c, const struct span *key, struct span value)
{
	struct process_attribute a = { NULL, NULL };
	int r;

	if (key->p == key->end || c->attributes.len == PROCESS_CONTEXT_ATTRIBUTES_MAX)
		return 0;
	r = value_text(value, &a.value);
	if (r <= 0)
		return r;
	a.name = copy_text(key);
	r = a.name ? vec_push(&c->attributes, a) : -ENOMEM;
	if (r < 0) {
		free(a.name);
		free(a.value);
	}
	return r;
}

static int read_resource(struct process_context *c, struct span resource)
{
	struct span key, value;
	struct field f;
	int r;

	while ((r = next_field(&resource, &f)) > 0) {
		if (f.number != RESOURCE_ATTRIBUTES || f.wire != WIRE_BYTES)
			continue;
		if ((r = read_pair(f.bytes, &key, &value)) < 0 ||
		    (r = add_attribute(c, &key, value)) < 0)
			return r;
	}
	return r;
}

/* "tls_v1", before the OTEP was accepted "tlsdesc_v1_dev"; others are read in other ways. */
static int read_schema(struct process_context *c, struct span value)
{
	struct field f;
	int r;

	while ((r = next_field(&value, &f)) > 0)
		if (f.number == VALUE_STRING && f.wire == WIRE_BYTES)
			c->has_threads =
				is_text(&f.bytes, "tls_v1") || is_text(&f.bytes, "tlsdesc_v1_dev");
	return r;
}

/* The names of threads' attributes: an array. What is no str keeps its number, nameless. */
static int read_keys(struct process_context *c, struct span array)
{
	struct field f;
	int r;

	while ((r = next_field(&array, &f)) > 0) {
		char *name = NULL;

		if (f.number != ARRAY_VALUES || f.wire != WIRE_BYTES ||
		    c->keys.len == PROCESS_CONTEXT_KEYS_MAX)
			continue;
		r = value_text(f.bytes, &name);
		if (!r && !(name = strdup("")))
			r = -ENOMEM;
		if (r < 0)
			return r;
		r = vec_push(&c->keys, name);
		if (r < 0) {
			free(name);
			return r;
		}
	}
	return r;
}

static int read_extra(struct process_context *c, struct span pair)
{
	struct span key, value;
	struct field f;
	int r = read_pair(pair, &key, &value);

	if (r < 0)
		return r;
	if (is_text(&key, SCHEMA_KEY))
		return read_schema(c, value);
	if (!is_text(&key, KEYS_KEY))
		return 0;
	while ((r = next_field(&value, &f)) > 0)
		if (f.number == VALUE_ARRAY && f.wire == WIRE_BYTES &&
		    (r = read_keys(c, f.bytes)) < 0)
			return r;
	return r;
}

int process_context_parse(const void *bytes, size_t len, struct process_context *out)
{
	struct process_context c = { 0 };
	struct span message = { bytes, (const uint8_t *)bytes + len };
	struct field f;
	int r;

	while ((r = next_field(&message, &f)) > 0) {
		if (f.wire != WIRE_BYTES)
			continue;
		if (f.number == CONTEXT_RESOURCE)
			r = read_resource(&c, f.bytes);
		else if (f.number == CONTEXT_ATTRIBUTES)
			r = read_extra(&c, f.bytes);
		if (r < 0)
			break;
	}
	if (r < 0) {
		process_context_release(&c);
		return r;
	}
	*out = c;
	return 0;
}

/* --- the mapping ------------------------------------------------------------------------------ */

static bool is_context(const struct mapping *m)
{
	static const char *const names[] = { "[anon_shmem:" SIGNATURE, "[anon:" SIGNATURE,
					     "/memfd:" SIGNATURE };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(m->path, names[i], strlen(names[i])))
			return true;
	return false;
}

/* At one moment: -EAGAIN: it changed meanwhile. */
static int read_once(pid_t pid, uint64_t addr, struct process_context *out)
{
	_cleanup_(freep) void *bytes = NULL;
	struct header before, after;
	int r = mem_read(pid, addr, &before, sizeof(before));

	if (r < 0)
		return r;
	if (memcmp(before.signature, SIGNATURE, sizeof(before.signature)) != 0 ||
	    before.version != VERSION || before.payload_bytes > PROCESS_CONTEXT_BYTES_MAX)
		return -EBADMSG;
	if (!before.published_ns)
		return -EAGAIN;
	bytes = malloc(before.payload_bytes + 1u);
	if (!bytes)
		return -ENOMEM;
	if ((r = mem_read(pid, before.payload, bytes, before.payload_bytes)) < 0 ||
	    (r = mem_read(pid, addr, &after, sizeof(after))) < 0)
		return r;
	if (memcmp(&before, &after, sizeof(before)) != 0)
		return -EAGAIN;
	r = process_context_parse(bytes, before.payload_bytes, out);
	if (!r)
		out->published_ns = before.published_ns;
	return r;
}

int process_context_read(pid_t pid, struct process_context *out)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int r = maps_open(pid, &maps), found = -ENOENT;

	while (r >= 0 && (r = maps_next(maps, &m)) > 0) {
		if (!is_context(&m))
			continue;
		found = -EAGAIN;
		for (int i = 0; i < READS_MAX && found == -EAGAIN; i++)
			found = read_once(pid, m.start, out);
		if (!found)
			return 0;
	}
	err_clear();
	return r < 0 ? r : found == -EAGAIN ? -ENOENT : found;
}
