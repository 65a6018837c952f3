/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_FOLDER_H
#define BASE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"

/*
 * An output of several files that appears whole or not at all: a folder made beside the target
 * (NAME.XXXXXXXX.partial), which folder_commit() puts in its place. A target that is there is
 * replaced if one of us has written it, as an empty file named mark says, and nothing else is in it
 * by now, as is_own() says by the name; else it is refused, as it is somebody's. Freed before
 * folder_commit(), the new one is removed.
 */
struct folder;

/* 0, or a negative errno with a message: -EEXIST for a target that is not to be replaced. */
int folder_open(const char *path, const char *mark, bool (*is_own)(const char *name),
		struct folder **out);

/*
 * Begins a file, which folder_end_file() ends: at most one is open. name is one of ours, without
 * slashes. 0 or a negative errno with a message; *out is borrowed until folder_end_file().
 */
int folder_begin_file(struct folder *f, const char *name, FILE **out);
int folder_end_file(struct folder *f);

/* From now on a write beyond so many bytes, of all files, fails: folder_end_file() has -E2BIG. */
void folder_limit(struct folder *f, uint64_t bytes);

/* Call once, with no file open. 0 or a negative errno with a message. */
int folder_commit(struct folder *f);
void folder_free(struct folder *f);
DEFINE_CLEANUP(struct folder *, folder_free)

#endif
