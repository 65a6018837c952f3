/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/pages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES_PER_BLOCK (PAGES_BLOCK_BYTES / PAGES_BYTES)
#define CHUNK_BYTES \
	(2u << 20)       /* a huge page: a fault for each small one costs as much as its read */
#define CHUNK_BLOCKS 127 /* with what is known of each in the room of the last one */

struct pages_block {
	int errors[PAGES_PER_BLOCK]; /* 0: it was read */
};

struct pages_chunk {
	uint8_t bytes[CHUNK_BLOCKS][PAGES_BLOCK_BYTES];
	struct pages_block blocks[CHUNK_BLOCKS];
};
_Static_assert(sizeof(struct pages_chunk) <= CHUNK_BYTES, "blocks in one chunk");

void pages_init(struct pages *p, int (*read)(void *arg, uint64_t addr, void *buf, size_t len),
		void *arg)
{
	*p = (struct pages){ .read = read, .arg = arg };
}

void pages_release(struct pages *p)
{
	for (size_t i = 0; i < p->chunks.len; i++)
		free(p->chunks.items[i]);
	vec_release(&p->chunks);
	address_map_release(&p->map);
	p->len = 0;
}

void pages_forget(struct pages *p)
{
	address_map_clear(&p->map);
	memset(p->recent, 0, sizeof(p->recent));
	p->len = 0;
}

void pages_reuse(struct pages *p, int (*read)(void *arg, uint64_t addr, void *buf, size_t len),
		 void *arg)
{
	if (p->chunks.len * CHUNK_BYTES > PAGES_KEPT_BYTES)
		pages_release(p);
	pages_forget(p);
	p->read = read;
	p->arg = arg;
}

/* Room for one more block. */
static int make_room(struct pages *p)
{
	void *chunk;

	if (p->len == PAGES_BYTES_MAX / PAGES_BLOCK_BYTES)
		pages_forget(p);
	if (p->len < p->chunks.len * CHUNK_BLOCKS)
		return 0;
	chunk = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	if (p->chunks.len) /* the first is seldom full */
		madvise(chunk, CHUNK_BYTES, MADV_HUGEPAGE);
	if (vec_push(&p->chunks, chunk) == 0)
		return 0;
	free(chunk);
	return -ENOMEM;
}

static void read_block(struct pages *p, uint64_t addr, uint8_t *bytes, struct pages_block *block)
{
	memset(block, 0, sizeof(*block));
	if (!p->read(p->arg, addr, bytes, PAGES_BLOCK_BYTES))
		return;
	for (size_t i = 0; i < PAGES_PER_BLOCK; i++)
		block->errors[i] = p->read(p->arg, addr + i * PAGES_BYTES, bytes + i * PAGES_BYTES,
					   PAGES_BYTES);
}

/* The place of a block, which is read if it is not there. */
static int find_block(struct pages *p, uint64_t number, uint32_t *out)
{
	struct pages_chunk *chunk;
	uint32_t place = address_map_get(&p->map, number + 1);
	int r;

	if (place == ADDRESS_NONE) {
		if ((r = make_room(p)) < 0)
			return r;
		place = p->len;
		chunk = p->chunks.items[place / CHUNK_BLOCKS];
		read_block(p, number * PAGES_BLOCK_BYTES, chunk->bytes[place % CHUNK_BLOCKS],
			   &chunk->blocks[place % CHUNK_BLOCKS]);
		if ((r = address_map_put(&p->map, number + 1, place)) < 0)
			return r;
		p->len++;
	}
	*out = place;
	return 0;
}

static bool is_whole(const struct pages_block *block)
{
	for (size_t i = 0; i < PAGES_PER_BLOCK; i++)
		if (block->errors[i])
			return false;
	return true;
}

/* Within one page. */
static int read_within(struct pages *p, uint64_t addr, void *buf, size_t len)
{
	uint64_t number = addr / PAGES_BLOCK_BYTES;
	size_t within = addr % PAGES_BLOCK_BYTES;
	const struct pages_chunk *chunk;
	uint32_t place;
	int r = find_block(p, number, &place);

	if (r < 0)
		return r;
	chunk = p->chunks.items[place / CHUNK_BLOCKS];
	place %= CHUNK_BLOCKS;
	if (is_whole(&chunk->blocks[place]))
		p->recent[number % PAGES_RECENT] =
			(struct pages_recent){ number + 1, chunk->bytes[place] };
	r = chunk->blocks[place].errors[within / PAGES_BYTES];
	if (!r)
		memcpy(buf, chunk->bytes[place] + within, len);
	return r;
}

static int read_by_page(struct pages *p, uint64_t addr, uint8_t *buf, size_t len)
{
	int r = 0;

	if (addr + len < addr || addr + len > UINT64_MAX - PAGES_BLOCK_BYTES)
		return -EFAULT;
	for (size_t done = 0, n; done < len && !r; done += n) {
		size_t left = PAGES_BYTES - (addr + done) % PAGES_BYTES;

		n = left < len - done ? left : len - done;
		r = read_within(p, addr + done, buf + done, n);
	}
	return r;
}

int pages_read(void *pages, uint64_t addr, void *buf, size_t len)
{
	struct pages *p = pages;
	const uint64_t number = addr / PAGES_BLOCK_BYTES;
	const struct pages_recent *recent = &p->recent[number % PAGES_RECENT];
	const size_t within = addr % PAGES_BLOCK_BYTES;

	if (recent->number != number + 1 || len > PAGES_BLOCK_BYTES - within)
		return read_by_page(p, addr, buf, len);
	if (len == sizeof(uint64_t)) /* what is most often read: no call */
		memcpy(buf, recent->bytes + within, sizeof(uint64_t));
	else
		memcpy(buf, recent->bytes + within, len);
	return 0;
}
