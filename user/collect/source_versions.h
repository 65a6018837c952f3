/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_SOURCE_VERSIONS_H
#define COLLECT_SOURCE_VERSIONS_H

#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/events.h"
#include "profile/profile.h"

/*
 * Which version of a source file ran: the digests of files that code objects name, read with the
 * rights that the thread had when the kernel described the code object, and in its root directory.
 * Reports show a source only by such a digest (export/source_text.h).
 *
 * A process beside us reads the files. A file whose file system does not answer is left to it, and
 * others are read by the next one. The CPU time is bounded: at most a tenth of the time that goes
 * by. Files and bytes are bounded for each process and each user, so that others have their share.
 */
struct source_versions;

/* profile is borrowed and must outlive it. 0 or -ENOMEM. */
int source_versions_new(struct profile *profile, struct source_versions **out);
void source_versions_free(struct source_versions *sv);
DEFINE_CLEANUP(struct source_versions *, source_versions_free)

/* A code object of this file was described. path: UTF-8. 0 or -ENOMEM. */
int source_versions_note(struct source_versions *sv, const char *path, const struct code_event *e);

/* Takes what was read into the profile, and has the next files read. 0 or -ENOMEM. */
int source_versions_step(struct source_versions *sv);

/*
 * The recording ends: reads what is left, for at most a second, and warns of what is missing. 0 or
 * -ENOMEM.
 */
int source_versions_settle(struct source_versions *sv);

/* The profile is whole: files that were not read so far are not shown of it. 0 or -ENOMEM. */
int source_versions_end_part(struct source_versions *sv);

/* Tells the profile all of it again: after profile_reset(). 0 or -ENOMEM. */
int source_versions_forget_ids(struct source_versions *sv);

#endif
