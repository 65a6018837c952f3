/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/memory_limit.h"
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

/* --- descriptors of ours ---------------------------------------------------------------------- */

#define PIPE_PART_BYTES (64u << 10)

/* Until the writer closes its end. A negative errno with a message. */
static int copy_pipe(int from, int to, const char *name, uint64_t max_bytes)
{
	_cleanup_(freep) char *part = malloc(PIPE_PART_BYTES);
	uint64_t sum = 0;
	ssize_t n;
	int r = part ? 0 : -ENOMEM;

	while (!r && (n = read(from, part, PIPE_PART_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : file_write(to, part, (size_t)n);
		if (r < 0)
			return err_set(r, "%s: %s", name, strerror(-r));
		sum += (uint64_t)n;
		if (sum > max_bytes)
			return err_set(-E2BIG,
				       "%s: more than %s through a pipe; --max-memory SIZE sets "
				       "another limit",
				       name, units_bytes(max_bytes).s);
	}
	return r;
}

/* The mode says that what is made of it is private: nobody knows whose it is. */
static int keep_pipe(int fd, const char *name, uint64_t max_bytes)
{
	_cleanup_(closep) int kept = memfd_create("pyebpf_input", MFD_CLOEXEC);
	int r;

	if (kept < 0 || fchmod(kept, 0600) < 0)
		return err_set(-errno, "%s: %s", name, strerror(errno));
	r = copy_pipe(fd, kept, name, max_bytes);
	if (!r && dup3(kept, fd, fd > STDERR_FILENO ? O_CLOEXEC : 0) < 0)
		r = -errno;
	return r;
}

static int take_descriptor(const char **path, int fd, uint64_t max_bytes)
{
	const char *name = fd == STDIN_FILENO ? "standard input" : *path;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(-errno, "%s: %s", name, strerror(errno));
	if (!strcmp(*path, "-"))
		*path = "/dev/stdin";
	if (S_ISREG(st.st_mode))
		return 0;
	if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return err_set(-EINVAL, "%s: neither a file nor a pipe", name);
	return keep_pipe(fd, name, max_bytes);
}

int input_take_pipes(const char **paths, size_t count, uint64_t max_memory_bytes)
{
	uint64_t max_bytes = memory_limit_or_default(max_memory_bytes);
	int r = 0;

	for (size_t i = 0; i < count && !r; i++) {
		int fd = file_descriptor_of(paths[i], STDIN_FILENO);

		r = fd < 0 ? 0 : take_descriptor(&paths[i], fd, max_bytes);
	}
	return r;
}

int input_begin(const struct call *call, uint64_t max_memory_bytes)
{
	memory_limit_set(max_memory_bytes);
	return input_take_pipes((const char **)call->operands.items, (size_t)call->operands.len,
				max_memory_bytes);
}

/* --- files ------------------------------------------------------------------------------------ */

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

uint64_t input_bytes(const char *const *paths, size_t count)
{
	uint64_t sum = 0;
	struct stat st;

	for (size_t i = 0; i < count; i++)
		if (!stat(paths[i], &st))
			sum += (uint64_t)st.st_size;
	return sum;
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
