/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TASK_IMAGE_H
#define TASK_IMAGE_H

/*
 * What tasks_collect() read of a process, as it lay in memory: made by tests/inspect/task_image.c.
 *
 *	u32 PY_VERSION_HEX, u32 pieces, u64 address of _PyRuntime
 *	pieces of {u64 address, u32 bytes, the bytes}, in the order of their addresses
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpf/events.h"
#include "inspect/walker.h"
#include "target/debug_offsets.h"
#include "target/offsets.h"

#define IMAGE_HEAD_BYTES 16
#define IMAGE_PIECE_HEAD_BYTES 12
#define IMAGE_PIECES_MAX 8192
#define IMAGE_TID 1 /* whoever asks for a thread has its pthread_self() */

struct image_piece {
	uint64_t addr;
	uint32_t len;
	const uint8_t *bytes;
};

struct task_image {
	uint32_t version;
	uint64_t runtime;
	uint64_t identity; /* another one each time: walks keep what they have met of a process */
	size_t count;
	struct image_piece pieces[IMAGE_PIECES_MAX];
	struct py_offsets off;
};

static inline int image_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct task_image *image = arg;
	bool is_any = false;

	memset(buf, 0, len);
	for (size_t i = 0; i < image->count; i++) {
		const struct image_piece *p = &image->pieces[i];
		uint64_t from = p->addr > addr ? p->addr : addr, to = addr + len;

		if (p->addr + p->len < to)
			to = p->addr + p->len;
		if (from >= to)
			continue;
		memcpy((uint8_t *)buf + (from - addr), p->bytes + (from - p->addr), to - from);
		is_any = true;
	}
	return is_any ? 0 : -EFAULT;
}

/* As tasks_process.peek: the stack of a thread. One image at a time. */
static inline int image_peek(void *arg, uint64_t ident, const struct walk_frame **frames,
			     uint32_t *depth)
{
	static struct walker *walker; /* kept: it is large */
	struct task_image *image = arg;
	const struct walk_process process = { .read = image_read,
					      .arg = image,
					      .off = &image->off,
					      .runtime = image->runtime,
					      .identity = image->identity };
	const struct walk_thread thread = { .tid = IMAGE_TID, .pointer = ident };
	struct walk walk;
	int r = walker ? 0 : walker_new(&walker);

	if (!r)
		r = walker_walk(walker, &process, &thread, &walk);
	if (r < 0)
		return r;
	*frames = walk.frames;
	*depth = walk.depth;
	return 0;
}

/* False: it is none. What it says of memory may be anything. */
static inline bool image_open(struct task_image *image, const uint8_t *bytes, size_t len)
{
	uint8_t head[DEBUG_OFFSETS_BYTES];
	uint32_t count;
	size_t at = IMAGE_HEAD_BYTES;

	if (len < IMAGE_HEAD_BYTES)
		return false;
	memcpy(&image->version, bytes, 4);
	memcpy(&count, bytes + 4, 4);
	memcpy(&image->runtime, bytes + 8, 8);
	image->identity++;
	image->count = 0;
	while (image->count < count && image->count < IMAGE_PIECES_MAX &&
	       len - at >= IMAGE_PIECE_HEAD_BYTES) {
		struct image_piece *p = &image->pieces[image->count];

		memcpy(&p->addr, bytes + at, 8);
		memcpy(&p->len, bytes + at + 8, 4);
		at += IMAGE_PIECE_HEAD_BYTES;
		if (p->len > len - at || p->addr + p->len < p->addr)
			break;
		p->bytes = bytes + at;
		at += p->len;
		image->count++;
	}
	if (VERSION_MINOR(image->version) < 13)
		return !offsets_find(image->version, 0, false, &image->off);
	return !image_read(image, image->runtime, head, sizeof(head)) &&
	       !debug_offsets_parse(head, sizeof(head), &image->off);
}

#endif
