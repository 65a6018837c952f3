/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Columns are written one after the other, rows are found part by part: a part keeps the bytes of
 * its stretch of each column, a byte a number mostly, and no rows.
 */
#include "export/page/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/varint.h"

enum row_column { COLUMN_SITE, COLUMN_TAG, COLUMN_SLOT, COLUMN_TICKS, COLUMN_OPCODE };
#define COLUMNS (COLUMN_OPCODE + 1)
#define NUMBER_BYTES_MAX 5                                                  /* of 32 bits */
#define ROW_BYTES_MAX ((COLUMNS - 1) * NUMBER_BYTES_MAX + VARINT_MAX_BYTES) /* values are of 64 */

struct part {
	uint8_t *bytes; /* columns one after the other */
	size_t end[COLUMNS];
	size_t count;
	uint32_t first_site, last_site; /* the distance to the first one is of another part */
};

struct page_rows {
	const uint32_t *opcodes; /* by string id; NULL: there are none */
	const struct cube_tag *tags;
	const uint32_t *tag_of; /* by tag: the page's */
	struct part part[CUBE_PARTS];
};

void page_rows_free(struct page_rows *rows)
{
	for (size_t i = 0; rows && i < CUBE_PARTS; i++)
		free(rows->part[i].bytes);
	free(rows);
}

static uint8_t *encode_sites(uint8_t *at, const struct cube_row *rows, size_t count)
{
	for (size_t i = 1; i < count; i++)
		at = varint_write(at, rows[i].key - rows[i - 1].key);
	return at;
}

static uint8_t *encode_tags(uint8_t *at, const struct cube_row *rows, size_t count,
			    const struct page_rows *all)
{
	for (size_t i = 0; i < count; i++)
		at = varint_write(at, all->tag_of[rows[i].tag]);
	return at;
}

static uint8_t *encode_slots(uint8_t *at, const struct cube_row *rows, size_t count,
			     const struct page_rows *all)
{
	for (size_t i = 0; i < count; i++) {
		bool is_same = i && rows[i].key == rows[i - 1].key &&
			       all->tag_of[rows[i].tag] == all->tag_of[rows[i - 1].tag];

		at = varint_write(at, rows[i].slot - (is_same ? rows[i - 1].slot : 0));
	}
	return at;
}

static uint8_t *encode_ticks(uint8_t *at, const struct cube_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		at = varint_write(at, rows[i].value);
	return at;
}

static uint8_t *encode_opcodes(uint8_t *at, const struct cube_row *rows, size_t count,
			       const struct page_rows *all)
{
	for (size_t i = 0; all->opcodes && i < count; i++)
		at = varint_write(at, all->opcodes[all->tags[rows[i].tag].opcode]);
	return at;
}

static int take_part(void *context, size_t index, const struct cube_row *rows, size_t count)
{
	struct page_rows *all = context;
	struct part *part = &all->part[index];
	uint8_t *bytes, *at, *kept;

	if (!count)
		return 0;
	at = bytes = malloc(count * ROW_BYTES_MAX);
	if (!bytes)
		return -ENOMEM;
	part->end[COLUMN_SITE] = (size_t)((at = encode_sites(at, rows, count)) - bytes);
	part->end[COLUMN_TAG] = (size_t)((at = encode_tags(at, rows, count, all)) - bytes);
	part->end[COLUMN_SLOT] = (size_t)((at = encode_slots(at, rows, count, all)) - bytes);
	part->end[COLUMN_TICKS] = (size_t)((at = encode_ticks(at, rows, count)) - bytes);
	at = encode_opcodes(at, rows, count, all);
	part->end[COLUMN_OPCODE] = (size_t)(at - bytes);
	part->count = count;
	part->first_site = rows[0].key;
	part->last_site = rows[count - 1].key;
	kept = realloc(bytes, part->end[COLUMN_OPCODE]);
	part->bytes = kept ? kept : bytes;
	return 0;
}

static void write_column(struct blob *b, const struct page_rows *rows, enum row_column column)
{
	uint32_t site = 0;

	for (size_t i = 0; i < CUBE_PARTS; i++) {
		const struct part *part = &rows->part[i];
		size_t from = column ? part->end[column - 1] : 0;

		if (!part->count)
			continue;
		if (column == COLUMN_SITE)
			blob_number(b, part->first_site - site);
		site = part->last_site;
		blob_bytes(b, part->bytes + from, part->end[column] - from);
	}
}

void page_rows_write(struct blob *b, const struct page_rows *rows)
{
	size_t count = 0;

	for (size_t i = 0; i < CUBE_PARTS; i++)
		count += rows->part[i].count;
	blob_number(b, count);
	for (enum row_column column = 0; column < COLUMNS; column++)
		write_column(b, rows, column);
}

int page_rows_new(const struct page *page, const uint32_t *opcodes, struct page_rows **out)
{
	const uint32_t *const site_of[CUBE_SIDES] = { page->site_of[0], page->site_of[1] };
	_cleanup_(page_rows_freep) struct page_rows *rows = calloc(1, sizeof(*rows));
	const struct cube_taker taker = { take_part, rows };
	int r;

	if (!rows)
		return -ENOMEM;
	rows->opcodes = opcodes;
	rows->tags = page->cube->tags.items;
	rows->tag_of = page->tag_of;
	r = cube_by_key(page->cube, page->blocks, site_of, (uint32_t)page->sites.len, &taker);
	if (r < 0)
		return r;
	*out = take_ptr(rows);
	return 0;
}
