/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "import/import.h"
#include "store/reader.h"

/* One of the two. */
struct input {
	struct import *import;
	struct reader *reader;
	char *path;
	uint32_t first; /* index of the file's first recording in the profile; INPUT_NO_RECORDING */
};

void input_free(struct input *in)
{
	if (!in)
		return;
	import_free(in->import);
	reader_free(in->reader);
	free(in->path);
	free(in);
}

/* What is made of a private recording is private. */
static void keep_as_private(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		file_keep_private(st.st_mode);
}

int input_open(const char *path, struct import_choice choice, struct input **out)
{
	_cleanup_(input_freep) struct input *in = calloc(1, sizeof(*in));
	int r;

	if (!in)
		return -ENOMEM;
	in->first = INPUT_NO_RECORDING;
	in->path = strdup(path);
	if (!in->path)
		return -ENOMEM;
	if (choice.format && reader_open(path, &in->reader) < 0)
		err_clear(); /* whatever it is: that is no recording */
	r = in->reader ? 0 : import_open(path, choice, &in->import);
	if (!r && !in->reader)
		r = reader_open(path, &in->reader);
	if (r < 0)
		return r;
	keep_as_private(path);
	*out = take_ptr(in);
	return 0;
}

int input_next(struct input *in, struct profile *p)
{
	int r = in->import ? import_next(in->import, p) : reader_next(in->reader, p);

	if (in->first == INPUT_NO_RECORDING)
		in->first = input_recording_index(in);
	return r;
}

int input_put_name(const struct input *in, struct strbuf *out)
{
	uint32_t before = input_recording_index(in) - in->first;

	strbuf_puts(out, in->path);
	return before ? strbuf_appendf(out, " (%" PRIu32 ")", before + 1) : strbuf_error(out);
}

const struct recording *input_recording(const struct input *in)
{
	return in->import ? &import_facts(in->import)->recording : reader_recording(in->reader);
}

uint32_t input_recording_index(const struct input *in)
{
	return in->import ? import_facts(in->import)->index : reader_recording_index(in->reader);
}

bool input_is_text(const struct input *in)
{
	return input_recording(in)->is_summed != 0;
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

void input_note_left_out(const struct input *in)
{
	uint64_t skipped = in->import ? import_facts(in->import)->skipped : 0;

	if (skipped)
		log_note("%s: lines skipped, without samples: %s", in->path,
			 units_count(skipped).s);
}

bool input_is_truncated(const struct input *in, uint64_t *offset)
{
	return in->reader && reader_is_truncated(in->reader, offset);
}
