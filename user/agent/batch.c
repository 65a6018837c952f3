/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/push.h"
#include "base/cleanup.h"
#include "base/gzip.h"

#define HEAD "{\"series\":["
#define TAIL "]}"

void batch_release(struct batch *b)
{
	strbuf_release(&b->body);
	strbuf_release(&b->series);
	*b = (struct batch){ .count = 0 };
}

static int unpack(enum engine engine, const void *body, size_t len, struct strbuf *out)
{
	return push_dialect(engine)->is_packed ? gzip_unpack(body, len, BATCH_BYTES_MAX, out)
					       : strbuf_append(out, body, len);
}

/* 1: out is the series of a body without what is around them; 0: it goes alone; -ENOMEM. */
static int find_series(enum engine engine, const struct spool_entry *e, const void *body,
		       size_t len, struct strbuf *out)
{
	const size_t head = strlen(HEAD), tail = strlen(TAIL);
	int r;

	if (!push_dialect(engine)->has_series || e->is_suspect || len > BATCH_ENTRY_BYTES)
		return 0;
	r = unpack(engine, body, len, out);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (out->len <= head + tail || memcmp(out->bytes, HEAD, head) != 0 ||
	    memcmp(out->bytes + out->len - tail, TAIL, tail) != 0)
		return 0;
	strbuf_truncate(out, out->len - tail);
	memmove(out->bytes, out->bytes + head, out->len - head);
	strbuf_truncate(out, out->len - head);
	return 1;
}

static int add_first(struct batch *b, const void *body, size_t len, struct strbuf *series)
{
	int r = strbuf_append(&b->body, body, len);

	if (r < 0 || !b->is_joinable)
		return r;
	b->series = *series;
	*series = (struct strbuf)STRBUF_INIT;
	return 0;
}

int batch_add(struct batch *b, enum engine engine, const struct spool_entry *e, const void *body,
	      size_t len)
{
	_cleanup_(strbuf_releasep) struct strbuf series = STRBUF_INIT;
	int r;

	if (b->count &&
	    (!b->is_joinable || b->count == BATCH_ENTRIES_MAX || b->series.len > BATCH_BYTES_MAX))
		return 0;
	r = find_series(engine, e, body, len, &series);
	if (r < 0 || (!r && b->count))
		return r;
	if (!b->count) {
		b->is_joinable = r;
		r = add_first(b, body, len, &series);
	} else {
		strbuf_putc(&b->series, ',');
		r = strbuf_append(&b->series, series.bytes, series.len);
	}
	if (r < 0)
		return r;
	b->entries[b->count++] = *e;
	return 1;
}

static int write_joined(const struct batch *b, enum engine engine, FILE *out)
{
	_cleanup_(gzip_freep) struct gzip *g = NULL;
	int r;

	if (!push_dialect(engine)->is_packed)
		return fprintf(out, HEAD "%s" TAIL, strbuf_str(&b->series)) < 0 ? -ENOMEM : 0;
	if ((r = gzip_new(out, &g)) < 0 || (r = gzip_write(g, HEAD, strlen(HEAD))) < 0 ||
	    (r = gzip_write(g, b->series.bytes, b->series.len)) < 0 ||
	    (r = gzip_write(g, TAIL, strlen(TAIL))) < 0)
		return r;
	return gzip_finish(g);
}

int batch_finish(struct batch *b, enum engine engine)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t len;
	FILE *out;
	int r;

	if (b->count > 1) {
		out = open_memstream(&bytes, &len);
		if (!out)
			return -ENOMEM;
		r = write_joined(b, engine, out);
		if (fclose(out) || r < 0)
			return -ENOMEM;
		strbuf_truncate(&b->body, 0);
		r = strbuf_append(&b->body, bytes, len);
		if (r < 0)
			return r;
	}
	strbuf_release(&b->series);
	return 0;
}
