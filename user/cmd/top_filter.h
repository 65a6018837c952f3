/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_FILTER_H
#define CMD_TOP_FILTER_H

#include "base/texts.h"
#include "cmd/select_opts.h"

/*
 * A selection as it is typed: options of the command line, quoted as for a shell, and words, which
 * stand for functions that have them in their names. Starts as zeros, ends in top_filter_release().
 */
struct top_filter {
	struct select_opts opts;
	struct select_query query; /* borrows from the filter */
	struct texts words;
};

/* 0, or a negative errno with a message: -EINVAL for what cannot be read. */
int top_filter_read(struct top_filter *f, const char *text);
void top_filter_release(struct top_filter *f);

#endif
