/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_CONTENT_H
#define IMPORT_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "profile/profile.h"

/*
 * What a file holds: its bytes, or what they are packed from by gzip or zstd, be it in several
 * pieces one after the other. Read at any place with bounds; of what is packed that is cheap
 * forward and begins anew backward. Memory: 64 KiB, and the window of the packer, of 128 MiB at
 * most (zstd --ultra --long=27).
 */
struct content;

/* fd is borrowed until content_free(). 0, -ENOMEM, or what read() reports, with a message. */
int content_open(int fd, struct content **out);
void content_free(struct content *c);
DEFINE_CLEANUP(struct content *, content_free)

/*
 * Reads len bytes at offset. Returns how many were there: less than len only at the end. -EBADMSG
 * for what is not packed right, -E2BIG for what becomes too much (import/unpacked.h), -ENOMEM, or
 * what read() reports; with a message.
 */
ssize_t content_pread(struct content *c, void *buf, size_t len, uint64_t offset);

/* How much it is; what is packed is read for that. As content_pread(). */
int content_size(struct content *c, uint64_t *size);

/*
 * What is read from now on fills p, which is borrowed while c is read: a file may not make much of
 * little (import/unpacked.h).
 */
void content_fills(struct content *c, const struct profile *p);

/* From now on the limits of import/unpacked.h are not for it. */
void content_trust(struct content *c);

/*
 * 0, or -E2BIG with a message: what was made of the file so far is too much (import/unpacked.h).
 * content_pread() does the same; for who makes much between two reads.
 */
int content_check(const struct content *c);

/* The same of a part of it that is packed once more: so many bytes became so many. */
int content_check_part(const struct content *c, uint64_t packed, uint64_t unpacked);

bool content_is_packed(const struct content *c);

#endif
