/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_CONVERT_H
#define CMD_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "import/import.h"
#include "profile/select.h"
#include "profile/strip.h"

/*
 * Files to one recording file, in which each of their recordings stays one of its own: `import` and
 * `cat`. It appears whole or not at all. Samples keep their kinds and their times to the ns;
 * counters are those of the whole recordings, but for sums of what the samples themselves tell.
 */
struct conversion_opts {
	const char *output;
	struct import_choice choice; /* of the files */
	uint64_t max_memory_bytes;   /* 0: the default */
	struct select_query query;   /* zeros: all samples */
	bool folds_imports;
	struct strip strip;
	uint32_t freq_hz; /* of files that do not say; 0: not known */
	uint64_t work;    /* of each; 0: as the files say */
};

/* All operands of the call. Returns the exit code, with a message where it failed. */
int convert(struct call *call, struct conversion_opts *o);

#endif
