/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_RENAME_H
#define DIFF_RENAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"

/*
 * `--rename OLD=NEW`: what is called OLD in base is NEW in current. Each side is one of
 *
 *	FILE		a path or its tail, whole components: `shop/cart.py`, `cart.py`
 *	FILE:QUALNAME	a function or class of that file, with all that is inside it
 *	QUALNAME	the same, of any file: `Cart.total`
 *
 * It is a FILE if it holds a `/` or ends in .py, .pyx, .pyc, .so or .zip; else a QUALNAME.
 */
struct diff_name {
	char *file;     /* owned; NULL: any */
	char *qualname; /* owned; NULL: any */
};

struct diff_rename {
	struct diff_name old;
	struct diff_name new;
};

struct diff_renames {
	struct diff_rename *items; /* a VEC; the first that fits a frame counts */
	size_t len;
	size_t cap;
};

/*
 * Appends what text says. 0; -EINVAL with a message that tells what is wrong, -ENOMEM. NEW must
 * name the same things as OLD: a FILE for a FILE; a function may drop its FILE, if it is the same.
 */
int diff_renames_add(struct diff_renames *r, const char *text);
void diff_renames_release(struct diff_renames *r);

#endif
