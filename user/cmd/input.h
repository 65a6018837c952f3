/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_INPUT_H
#define CMD_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "import/import.h"
#include "profile/profile.h"

/*
 * A file with samples, as commands take it: a recording, or a file of another format, told apart
 * by what is in it. Samples come in batches: who sums and clears them after each stays bounded.
 */
struct input;

/* What a sample of text stands for where its first line does not say. */
#define INPUT_INTERVAL_DEFAULT_NS 1000000

/* Rows for every command that reads files. max_memory_bytes: for memory_limit_set(). */
#define INPUT_OPTIONS(choice, max_memory_bytes)                                                  \
	OPT_ENUM(0, "from", &(choice)->format, "FORMAT", import_words,                           \
		 "input format, if it cannot be detected"),                                      \
		OPT_FLAG(0, "trust", &(choice)->is_trusted,                                      \
			 "also read files that expand to over 1,000 times their size"),          \
		OPT_BYTES(0, "max-memory", (max_memory_bytes),                                   \
			  "use at most SIZE of memory (default: a quarter of the machine's, at " \
			  "least 1 GiB)",                                                        \
			  .min = 16u << 20)

/*
 * Some paths mean a descriptor of ours: "-", /dev/stdin, /dev/fd/N. Files are read more than once
 * and at any offset, so what comes through a pipe is kept in memory, and the descriptor refers to
 * that from now on. max_memory_bytes: as memory_limit_set() takes it. 0, or a negative errno with a
 * message: -E2BIG: it is more than that memory; -EINVAL: a terminal or a device.
 */
int input_take_pipes(const char **paths, size_t count, uint64_t max_memory_bytes);

/* For a command that reads its operands: limits its memory, then takes pipes. As above. */
int input_begin(const struct call *call, uint64_t max_memory_bytes);

/* Bytes of these files. Nothing of a path that is none: whoever opens it says so. */
uint64_t input_bytes(const char *const *paths, size_t count);

/*
 * choice: what the file is, unless it is a recording. 0, or a negative errno with a message that
 * names the path; *out is untouched then.
 */
int input_open(const char *path, struct import_choice choice, struct input **out);
void input_free(struct input *in);
DEFINE_CLEANUP(struct input *, input_free)

/*
 * Adds the next batch to p, as reader_next() and import_next() do: tables of several inputs merge,
 * their recordings join p's. One input, one profile. 1; 0 at the end; a
 * negative errno with a message: -EBADMSG for a damaged file, of which p has all batches before.
 */
int input_next(struct input *in, struct profile *p);

/* What this file says of itself. Borrowed; complete after the last batch. */
const struct recording *input_recording(const struct input *in);

/* Of the profile's recordings: the one that the last batch was of. */
#define INPUT_NO_RECORDING UINT32_MAX
uint32_t input_recording_index(const struct input *in);

/*
 * Appends what that one is called: the path, and of a file's further recordings its number,
 * "a.pyebpf (2)". 0 or -ENOMEM.
 */
int input_put_name(const struct input *in, struct strbuf *out);

/*
 * Text, or a recording made of it: sums of stacks, without times. All samples are at 0, and one may
 * stand for any number.
 */
bool input_is_text(const struct input *in);

/* When its last sample is, by its index; 0: it has none. */
uint64_t input_last_ns(struct input *in);

/* Says what was no use so far: lines of text without samples. */
void input_note_left_out(const struct input *in);

/*
 * After input_next() returned 0: whether the file ends early. *offset (may be NULL): of the first
 * byte that was not used.
 */
bool input_is_truncated(const struct input *in, uint64_t *offset);

#endif
