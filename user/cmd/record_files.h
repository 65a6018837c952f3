/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_RECORD_FILES_H
#define CMD_RECORD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/load.h"
#include "collect/recorder.h"
#include "store/writer.h"

/*
 * The files of `record`: the recording, which is written while it is made, and what is made of it
 * in the end. Where only others are asked for (-o app.html), the recording stands beside the first
 * of them meanwhile (app.html.pyebpf): that is what a crash leaves.
 */
struct record_outputs {
	struct opt_list paths; /* of -o; none: DEFAULT_RECORDING */
	bool should_open;      /* the page, in a browser */
	uint64_t rotate_ns;    /* 0: one file */
	uint32_t rotate_keep;  /* 0: all files */
};

#define DEFAULT_RECORDING "profile.pyebpf"

struct record_files {
	const struct record_outputs *o;
	struct recorder *recorder; /* borrowed */
	struct writer *writer;     /* of the recording that is being written; NULL: none */
	char *path;                /* its own, owned */
	VEC(char *) older;         /* of --rotate-keep, oldest first; owned */
	struct load top;           /* all that was written, by function: for the summary */
	struct leaf_map leaves;
	uint64_t last_counters_ns;
};

/* EXIT_OK, or EXIT_USAGE after the message. */
int record_files_check(const struct call *call, const struct record_outputs *o);

/* The file that the user thinks of: what to show, and to open. Borrowed. */
const char *record_files_name(const struct record_files *f);

/*
 * Opens the file of the part that the recorder has begun: with --rotate the time of its start is in
 * its name, a second later where that is taken. This and what follows: 0, or a negative errno with
 * a message.
 */
int record_files_open(struct record_files *f, struct recorder *recorder);

/* Writes what there is if it is_time or much has come, and begins the next file when that is due.
 */
int record_files_step(struct record_files *f, bool is_time);

/* Writes what there is, whenever that is asked for. */
int record_files_write_all(struct record_files *f);

/* After recorder_finish(): the rest of the last file. is_whole: as of struct recording. */
int record_files_end(struct record_files *f, bool is_whole);

/* Is the recording a file of its own right? */
bool record_files_has_recording(const struct record_files *f);

/*
 * Makes the other outputs of the recording, and removes that if nobody asked for it. On failure it
 * stays. 0 or a negative errno with a message.
 */
int record_files_convert(struct record_files *f);

void record_files_release(struct record_files *f);

#endif
