/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DIFF_NOTES_H
#define DIFF_NOTES_H

#include "diff/diff.h"
#include "diff/identity.h"
#include "diff/rename.h"

/* What a comparison has to say of itself, into d->notes. All 0 or -ENOMEM. */

/* Names that found no other, once identities are known. */
int notes_of_names(struct diff *d, const struct identity *id, const struct diff_renames *renames);

/* What the sides lack, once they are compared. */
int notes_of_sides(struct diff *d);

#endif
