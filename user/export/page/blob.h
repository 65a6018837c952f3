/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_BLOB_H
#define EXPORT_PAGE_BLOB_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

/*
 * The data of a page as it is written: numbers and bytes go through zlib and base64 to a stream.
 * assets/README.md, "The blob". What is written is not kept: memory is the same whatever goes
 * through.
 */
struct blob {
	FILE *out; /* borrowed */
	z_stream z;
	uint8_t pending[1 << 16];
	size_t pending_len;
	uint8_t tail[3]; /* deflated, not yet a whole group of base64 */
	size_t tail_len;
};

/* 0 or -ENOMEM. Ends in blob_finish(), or blob_release() if it is not needed any more. */
int blob_init(struct blob *b, FILE *out);

void blob_number(struct blob *b, uint64_t v);
void blob_bytes(struct blob *b, const void *bytes, size_t len);

/* Writes what is pending. Errors of the stream are left to whoever closes it. */
void blob_finish(struct blob *b);
void blob_release(struct blob *b);

#endif
