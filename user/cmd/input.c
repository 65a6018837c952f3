/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/texts.h"
#include "base/units.h"
#include "import/import.h"
#include "store/reader.h"

/* One of the two. */
struct input {
	struct import *import;
	struct reader *reader;
};

void input_free(struct input *in)
{
	if (!in)
		return;
	import_free(in->import);
	reader_free(in->reader);
	free(in);
}

int input_open(const char *path, struct input **out)
{
	_cleanup_(input_freep) struct input *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return -ENOMEM;
	r = import_open(path, &in->import);
	if (!r)
		r = reader_open(path, &in->reader);
	if (r < 0)
		return r;
	*out = take_ptr(in);
	return 0;
}

int input_next(struct input *in, struct profile *p)
{
	return in->import ? import_next(in->import, p) : reader_next(in->reader, p);
}

const struct metadata *input_metadata(const struct input *in)
{
	return in->import ? &import_facts(in->import)->meta : reader_metadata(in->reader);
}

uint64_t input_interval_ns(const struct input *in)
{
	uint64_t interval_ns = input_metadata(in)->interval_ns;

	return !interval_ns && input_is_text(in) ? INPUT_INTERVAL_DEFAULT_NS : interval_ns;
}

bool input_is_text(const struct input *in)
{
	return input_metadata(in)->is_summed != 0;
}

uint64_t input_last_ns(struct input *in)
{
	_cleanup_(freep) struct reader_chunk *chunks = NULL;
	uint64_t last_ns = 0;
	size_t count;

	if (!in->reader || reader_index(in->reader, &chunks, &count) < 0) {
		err_clear(); /* a damaged index is no reason not to read the samples */
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		if (chunks[i].last_ns > last_ns)
			last_ns = chunks[i].last_ns;
	return last_ns;
}

uint64_t input_skipped(const struct input *in)
{
	return in->import ? import_facts(in->import)->skipped : 0;
}

bool input_is_truncated(const struct input *in, uint64_t *offset)
{
	return in->reader && reader_is_truncated(in->reader, offset);
}

/* "of 1 ms each" */
static void put_interval(char *text, size_t size, uint64_t interval_ns)
{
	if (interval_ns)
		snprintf(text, size, "of %s each", units_ns(interval_ns).s);
	else
		snprintf(text, size, "of unknown length");
}

#define INTERVALS_DIFFER "%s: its samples are %s, and counted as those of the first file, %s"

int input_compare_intervals(const struct input *in, const struct profile *p, const char *path,
			    struct texts *notes)
{
	uint64_t first_ns = p->meta.interval_ns, interval_ns = input_metadata(in)->interval_ns;
	char first[64], own[64];

	if (!p->recordings || interval_ns == first_ns)
		return 0;
	put_interval(first, sizeof(first), first_ns);
	put_interval(own, sizeof(own), interval_ns);
	log_warning(INTERVALS_DIFFER, path, own, first);
	return notes ? texts_addf(notes, INTERVALS_DIFFER, path, own, first) : 0;
}
