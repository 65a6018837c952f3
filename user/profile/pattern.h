/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_PATTERN_H
#define PROFILE_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Patterns of selections, globs as fnmatch() takes them: what each kind of them is held against.
 * select.h says what users write. Without memory for a copy nothing matches.
 */

bool pattern_matches(const char *pattern, const char *text);

/* Of a qualname or its last part, "FILE:FUNCTION" of such a file. */
bool pattern_matches_function(const char *pattern, const char *name, const char *file);

/* Of a path, or its end behind a slash. */
bool pattern_matches_file(const char *pattern, const char *path);

/* Of a module, dotted, or of a package it is in; path: of its file, which tells libraries. */
bool pattern_matches_module(const char *pattern, const char *path, const char *name);

/* Of a name, or one of two numbers, 0: there is none. */
bool pattern_matches_numbered(const char *pattern, const char *name, uint32_t id,
			      uint32_t other_id);

/* NAME=VALUE, or NAME, of one label: the name as it is, the value by glob. */
bool pattern_matches_label(const char *pattern, const char *name, const char *value);

#endif
