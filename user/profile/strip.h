/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_STRIP_H
#define PROFILE_STRIP_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/idmap.h"
#include "profile/numbered.h"
#include "profile/profile.h"

/*
 * What a file that leaves the house need not tell; docs/sharing.md says it to users.
 *
 * paths: a file of own code is its name, "orders.py"; one that has a name that a file of another
 * folder has is "2/orders.py". Of a library's the path below the folder where Python looks for it
 * stays, as it is the name of its module: "/site-packages/django/db/models.py",
 * "/lib/python3.12/json/decoder.py". Executables and mapped files are their names; absolute paths
 * within other names lose their folders. Host, containers and pods are not told; nor is what
 * source strips: command lines, which hold programs (python -c), paths and secrets.
 *
 * Starts as { .paths, .source }, for all that goes into one file: names are the same throughout.
 * Ends in strip_release().
 */
struct strip {
	bool paths, source;

	/* inside: files of own code that were seen, and what they are called */
	struct strtab *seen, *names;
	struct numbered bases; /* of those files */
	VEC(uint32_t) name_of; /* by id in seen: id in names */
};
void strip_release(struct strip *s);

static inline bool strip_is_active(const struct strip *s)
{
	return s && (s->paths || s->source);
}

/*
 * What becomes of texts of `from` in the strings of `to`: *id. 0, -ENOMEM, -EOVERFLOW. A file is
 * one of code of this kind (enum frame_type).
 */
int strip_file(struct strip *s, const struct profile *from, uint32_t file, uint8_t kind,
	       struct profile *to, uint32_t *id);
int strip_text(struct strip *s, const struct profile *from, uint32_t text, struct profile *to,
	       uint32_t *id);

/* Of a process: what is not told becomes "". */
void strip_process(const struct strip *s, struct process *p);

/* 0 or -ENOMEM. */
int strip_recording(const struct strip *s, struct recording *r);

#endif
