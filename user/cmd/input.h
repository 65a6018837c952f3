/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_INPUT_H
#define CMD_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * A file with samples, as commands take it: a recording, or a file of another format, told apart
 * by what is in it. Samples come in batches: who sums and clears them after each stays bounded.
 */
struct texts;
struct input;

/* What a sample of text stands for where its first line does not say. */
#define INPUT_INTERVAL_DEFAULT_NS 1000000

/* 0, or a negative errno with a message that names the path; *out is untouched then. */
int input_open(const char *path, struct input **out);
void input_free(struct input *in);
DEFINE_CLEANUP(struct input *, input_free)

/*
 * Adds the next batch to p, as reader_next() and import_next() do: tables and counters of several
 * inputs merge, p->meta becomes the first one's. One input, one profile. 1; 0 at the end; a
 * negative errno with a message: -EBADMSG for a damaged file, of which p has all batches before.
 */
int input_next(struct input *in, struct profile *p);

/* What this file says of itself. Borrowed; complete after the last batch. */
const struct metadata *input_metadata(const struct input *in);

/*
 * What one of its samples counts as: INPUT_INTERVAL_DEFAULT_NS for text that does not say; 0 for a
 * recording of an event that counts no time.
 */
uint64_t input_interval_ns(const struct input *in);

/*
 * Text, or a recording made of it: sums of stacks, without times. All samples are at 0, and one may
 * stand for any number.
 */
bool input_is_text(const struct input *in);

/* When its last sample is, by its index; 0: it has none. */
uint64_t input_last_ns(struct input *in);

/* Lines of text without samples so far. */
uint64_t input_skipped(const struct input *in);

/*
 * After input_next() returned 0: whether the file ends early. *offset (may be NULL): of the first
 * byte that was not used.
 */
bool input_is_truncated(const struct input *in, uint64_t *offset);

/*
 * Before its first batch goes into p: warns if p has inputs whose samples last another time, since
 * sums of both are no time then. The sentence is added to notes as well, unless that is NULL. 0 or
 * -ENOMEM.
 */
int input_compare_intervals(const struct input *in, const struct profile *p, const char *path,
			    struct texts *notes);

#endif
