/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_RECORD_FILES_H
#define CMD_RECORD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "cmd/cmd.h"

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
	char *path;        /* of the recording that is being written, owned */
	VEC(char *) older; /* of --rotate-keep, oldest first; owned */
};

/* EXIT_OK, or EXIT_USAGE after the message. */
int record_files_check(const struct call *call, const struct record_outputs *o);

/* The file that the user thinks of: what to show, and to open. Borrowed. */
const char *record_files_name(const struct record_files *f);

/*
 * Chooses f->path for a recording that starts then (CLOCK_REALTIME): with --rotate a name with that
 * time in it, a second later where it is taken. 0 or -ENOMEM.
 */
int record_files_next(struct record_files *f, uint64_t start_realtime_ns);

/* The file at f->path is there: removes the oldest ones of this recording beyond --rotate-keep. */
int record_files_keep(struct record_files *f);

/* Is the recording a file of its own right? */
bool record_files_has_recording(const struct record_files *f);

/*
 * Makes the other outputs of the recording, and removes that if nobody asked for it. On failure it
 * stays. 0 or a negative errno with a message.
 */
int record_files_convert(struct record_files *f);

void record_files_release(struct record_files *f);

#endif
