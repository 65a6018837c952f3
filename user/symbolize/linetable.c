/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/linetable.h"

#include <errno.h>
#include <stdlib.h>

#define CODE_UNIT 2 /* bytes in a _Py_CODEUNIT */
#define NO_LINE (-128)
#define OPEN_END UINT32_MAX /* lnotab does not say where the code ends */
#define RANGES_MIN 4

enum { KIND_ONE_LINE_0 = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE = 15 };

/* The bytes of one location entry behind its head. The first error sticks. */
struct reader {
	const uint8_t *pos, *end;
	int error; /* -ENODATA: it ends too early; -EBADMSG: malformed */
};

/* Bit 7 is set in the head of an entry and nowhere else. */
static unsigned next_byte(struct reader *r)
{
	if (r->error)
		return 0;
	if (r->pos == r->end) {
		r->error = -ENODATA;
		return 0;
	}
	if (*r->pos & 0x80) {
		r->error = -EBADMSG;
		return 0;
	}
	return *r->pos++;
}

/* Six bits per byte, least significant first, bit 6 means "more". */
static unsigned next_varint(struct reader *r)
{
	unsigned b, value = 0;

	for (unsigned shift = 0; shift < 32; shift += 6) {
		b = next_byte(r);
		value |= (b & 63) << shift;
		if (!(b & 64))
			return value;
	}
	r->error = -EBADMSG;
	return 0;
}

/* Sign in bit 0. */
static int next_svarint(struct reader *r)
{
	unsigned v = next_varint(r);

	return v & 1 ? -(int)(v >> 1) : (int)(v >> 1);
}

/* Columns are kept as they are from the start, 0-based; a varint has them plus 1, 0: none. */
static int next_column(struct reader *r)
{
	unsigned column = next_varint(r);

	return column && column <= INT32_MAX ? (int)column - 1 : -1;
}

static int shown(int64_t line)
{
	return line >= 1 && line <= INT32_MAX ? (int)line : 0;
}

/* Where the source of an entry's instructions is, beside the line that it begins on. */
struct extent {
	int64_t end_line;       /* from the line on */
	int column, end_column; /* -1: not told */
};

/* Each of the next three reads one entry, knowing that c->pos < len, and leaves c on failure. */

/* The line delta holds from the end of the byte delta on: the pair closes the line before. */
static int next_lnotab(struct linetable_cursor *c, const uint8_t *table, size_t len,
		       struct lines_range *out)
{
	if (len - c->pos < 2)
		return -ENODATA;
	*out = (struct lines_range){ .end = c->start + table[c->pos], .line = shown(c->line) };
	c->line += (int8_t)table[c->pos + 1];
	c->pos += 2;
	return 1;
}

static int next_deltas(struct linetable_cursor *c, const uint8_t *table, size_t len,
		       struct lines_range *out)
{
	int delta;

	if (len - c->pos < 2)
		return -ENODATA;
	delta = (int8_t)table[c->pos + 1];
	if (delta != NO_LINE)
		c->line += delta;
	*out = (struct lines_range){ .end = c->start + table[c->pos],
				     .line = delta == NO_LINE ? 0 : shown(c->line) };
	c->pos += 2;
	return 1;
}

static int next_location(struct linetable_cursor *c, const uint8_t *table, size_t len,
			 struct lines_range *out, struct extent *extent)
{
	struct reader r = { .pos = table + c->pos + 1, .end = table + len };
	struct extent e = { .column = -1, .end_column = -1 };
	unsigned head = table[c->pos];
	unsigned kind = head >> 3 & 15, columns;
	int delta = 0;

	if (!(head & 0x80))
		return -EBADMSG;
	switch (kind) {
	case KIND_NONE: /* leaves the running line alone */
		break;
	case KIND_LONG:
		delta = next_svarint(&r);
		e.end_line = next_varint(&r);
		e.column = next_column(&r);
		e.end_column = next_column(&r);
		break;
	case KIND_NO_COLUMNS:
		delta = next_svarint(&r);
		break;
	case KIND_ONE_LINE_0:
	case KIND_ONE_LINE_0 + 1:
	case KIND_ONE_LINE_0 + 2:
		delta = (int)kind - KIND_ONE_LINE_0;
		e.column = (int)next_byte(&r);
		e.end_column = (int)next_byte(&r);
		break;
	default: /* short form: same line, columns in one byte */
		columns = next_byte(&r);
		e.column = (int)(kind << 3 | columns >> 4);
		e.end_column = e.column + (int)(columns & 15);
	}
	if (r.error)
		return r.error;

	c->line += delta;
	*out = (struct lines_range){ .end = c->start + ((head & 7) + 1) * CODE_UNIT,
				     .line = kind == KIND_NONE ? 0 : shown(c->line) };
	*extent = e;
	c->pos = (uint32_t)(r.pos - table);
	return 1;
}

/*
 * The range from c->start on, which may be empty. Returns 1, 0 at the end of the table, -EBADMSG,
 * or -ENODATA if the rest is needed first (never if is_whole). c moves on only with 1.
 */
static int next_range(struct linetable_cursor *c, const uint8_t *table, size_t len, bool is_whole,
		      struct lines_range *out, struct extent *extent)
{
	int r;

	*extent = (struct extent){ .column = -1, .end_column = -1 };

	if (c->pos == len) {
		if (!is_whole)
			return -ENODATA;
		if (c->format != LINES_LNOTAB || c->start == OPEN_END)
			return 0;
		*out = (struct lines_range){ .end = OPEN_END, .line = shown(c->line) };
		c->start = OPEN_END;
		return 1;
	}

	switch (c->format) {
	case LINES_LNOTAB:
		r = next_lnotab(c, table, len, out);
		break;
	case LINES_DELTAS:
		r = next_deltas(c, table, len, out);
		break;
	case LINES_LOCATIONS:
		r = next_location(c, table, len, out, extent);
		break;
	default:
		return -EBADMSG;
	}
	if (r == 1)
		c->start = out->end;
	return r == -ENODATA && is_whole ? -EBADMSG : r;
}

int linetable_position(enum lines_format format, const uint8_t *table, size_t len, int first,
		       uint32_t instr, struct code_position *out)
{
	struct linetable_cursor c = { .format = format, .line = first };
	struct lines_range range;
	struct extent extent;
	int r;

	if (len > LINETABLE_BYTES_MAX)
		return -E2BIG;
	*out = (struct code_position){ .column = -1, .end_column = -1 };
	if (instr > INT32_MAX)
		return 0;
	while ((r = next_range(&c, table, len, true, &range, &extent)) == 1) {
		if (instr >= range.end)
			continue;
		*out = (struct code_position){
			.line = range.line,
			.end_line = range.line ? shown(range.line + extent.end_line) : 0,
			.column = extent.column,
			.end_column = extent.end_column,
		};
		return range.line;
	}
	return r;
}

int linetable_line(enum lines_format format, const uint8_t *table, size_t len, int first,
		   uint32_t instr)
{
	struct code_position position;

	return linetable_position(format, table, len, first, instr, &position);
}

void lines_init(struct lines *l, enum lines_format format, int first)
{
	*l = (struct lines){ .next = { .format = format, .line = first } };
}

void lines_release(struct lines *l)
{
	free(l->ranges);
	l->ranges = NULL;
	l->count = l->capacity = 0;
}

static int resize(struct lines *l, uint32_t capacity)
{
	struct lines_range *ranges = realloc(l->ranges, capacity * sizeof(*ranges));

	if (!ranges)
		return -ENOMEM;
	l->ranges = ranges;
	l->capacity = capacity;
	return 0;
}

static int append(struct lines *l, struct lines_range range)
{
	uint32_t start = l->count ? l->ranges[l->count - 1].end : 0;

	if (range.end == start)
		return 0;
	if (l->count && l->ranges[l->count - 1].line == range.line) {
		l->ranges[l->count - 1].end = range.end;
		return 0;
	}
	if (l->count == l->capacity && resize(l, l->capacity ? 2 * l->capacity : RANGES_MIN) < 0)
		return -ENOMEM;
	l->ranges[l->count++] = range;
	return 0;
}

int lines_extend(struct lines *l, const uint8_t *table, size_t len, size_t whole_len)
{
	struct lines_range range;
	struct extent extent;
	int r;

	if (whole_len > LINETABLE_BYTES_MAX)
		return -E2BIG;
	if (l->state == LINES_TORN)
		return -EBADMSG;
	if (l->state == LINES_WHOLE || len < l->next.pos)
		return 0;

	for (;;) {
		struct linetable_cursor next = l->next;

		r = next_range(&next, table, len, len == whole_len, &range, &extent);
		if (r != 1)
			break;
		if (append(l, range) < 0)
			return -ENOMEM;
		l->next = next;
	}
	if (r == -ENODATA)
		return 0;
	l->state = r < 0 ? LINES_TORN : LINES_WHOLE;
	if (l->count)
		resize(l, l->count); /* gives the spare back; where it cannot, nothing is lost */
	return r;
}

int lines_find(const struct lines *l, uint32_t instr)
{
	uint32_t low = 0, high = l->count;

	if (instr > INT32_MAX)
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (instr < l->ranges[middle].end)
			high = middle;
		else
			low = middle + 1;
	}
	if (low < l->count)
		return l->ranges[low].line;
	if (l->state == LINES_WHOLE)
		return 0;
	return l->state == LINES_TORN ? -EBADMSG : -ENODATA;
}

size_t lines_bytes(const struct lines *l)
{
	return l->capacity * sizeof(*l->ranges);
}
