/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_DIFF_LOAD_H
#define CMD_DIFF_LOAD_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/input.h"
#include "import/import.h"
#include "profile/select.h"

/* A recording, or a file of another format: one run of a side. */
struct diff_file {
	enum diff_side side;
	const char *path;
};

struct diff_reading {
	struct import_choice choice; /* of the files */
	bool folds_imports;          /* profile/imports.h; not for --compat */
	bool is_in_ns;               /* ticks of known length become the time that they stand for */
	struct select_query select[DIFF_SIDES];
	bool has_unit; /* a sample of text that does not say counts as INPUT_INTERVAL_DEFAULT_NS */
};

/*
 * Reads them, several at once, as runs in this order: chunk by chunk, each summed and dropped.
 * The counters of sides[] become the sums
 * of each side's; selected[], of their
 * samples. A file that ends early gives a warning and what is good of it. 0, or a negative
 * errno with a message, of the first file that has one.
 */
int diff_load(struct diff_input *in, const struct diff_file *files, size_t count,
	      const struct diff_reading *how, struct profile *const sides[DIFF_SIDES],
	      struct select_sum selected[DIFF_SIDES]);

/*
 * Appends to reasons a sentence for each file that one side has twice: it would make the noise
 * look smaller than it is. 0 or -ENOMEM.
 */
int diff_load_check_twice(const struct diff_input *in, struct texts *reasons);

/* Appends to notes that a file stands on both sides, or an equal one. 0 or -ENOMEM. */
int diff_load_note_same(const struct diff_input *in, struct texts *notes);

#endif
