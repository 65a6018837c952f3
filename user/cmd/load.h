/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_LOAD_H
#define CMD_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/texts.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/road.h"
#include "export/export.h"
#include "profile/cube.h"
#include "profile/gil.h"
#include "profile/profile.h"
#include "profile/waits.h"

/* Stack of one function in a load, by frame id; 0: not looked up yet. */
struct leaf_map {
	uint32_t *items; /* a VEC */
	size_t len;
	size_t cap;
};

/*
 * What commands need of one or more recordings, merged: tables and sums, or the file that is made
 * of them. Starts as { .cube.axes or .to, .road.folds_imports, .road.select.query }, ends in
 * load_release().
 */
struct load {
	struct road road;
	struct profile *profile; /* without samples */
	struct export_file to;   /* its exporter is NULL where sums alone are wanted */
	struct cube cube;        /* finished by load_files(); empty if the exporter takes samples */
	bool tells_waits, tells_gil; /* set by the caller: whether the two are wanted */
	struct waits waits;          /* of what is selected, be it shown or not */
	struct gil gil;              /* finished by load_files() */
	uint64_t taken;              /* samples that are left of them, of any kind */
	uint64_t records;            /* samples as stored: one may weigh several ticks */
	uint64_t ticks;              /* values of those selected: what users are told as samples */
	uint64_t all_ticks;          /* of all of them */
	bool is_cut;                 /* a file ends early, or is damaged from some point on */
	struct texts notes;          /* what the reader of a page should know of the files */
};

/*
 * Reads them all. A file that ends early or is damaged gives a warning and what is good of it; it
 * is an error if that is no sample. 0, or a negative errno with a message; l is to be released in
 * any case.
 */
int load_files(struct load *l, const char *const *paths, size_t count);

/*
 * For a recorder: the samples p holds now, but only by the function they were in, so that what is
 * kept grows with the program and not with its stacks. functions maps frame ids of p to those of
 * l->profile, and is to be emptied when p is reset. 0 or -ENOMEM.
 */
int load_add_leaves(struct load *l, const struct profile *p, struct leaf_map *functions);

/*
 * The same for a command's operands; without any: profile.pyebpf. max_memory_bytes: for
 * input_begin().
 */
int load_operands(struct load *l, const struct call *call, uint64_t max_memory_bytes);

/* How many were due and came: ticks by their weights, of what is summed as it is one each. */
uint64_t load_samples(const struct load *l);

/* Has it samples, of which none was selected? */
bool load_lacks_selected(const struct load *l);

/* Says so. EXIT_NOTHING. */
int load_fail_selection(const struct call *call, const struct load *l);

/* After load_files(): the file is written, or its end. As export_file_finish(). */
int load_export(struct load *l);

void load_release(struct load *l);

#endif
