/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records as a target may cause them: code objects and pieces of line tables with any lengths, on
 * eight identities, in a table that holds about a hundred of the smallest. After each record every
 * identity is asked for a line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/code.h"
#include "symbolize/linetable.h"

#define BYTES_MAX (24u << 10)
#define IDENTITIES 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct record {
	uint8_t what; /* bit 7: a code object, else a piece; low bits: identity */
	uint8_t format;
	uint8_t kinds; /* of name and file, 3 bits each, bits 6 and 7: cut */
	uint8_t name_len, file_len;
	uint8_t reserved[3];
	int32_t first_line;
	uint32_t total_or_offset;
};

static void add(struct code_table *t, const struct record *r, const uint8_t *bytes, size_t len)
{
	size_t name_len = r->name_len < len ? r->name_len : len;
	size_t file_len = r->file_len < len - name_len ? r->file_len : len - name_len;
	struct code_desc d = {
		.identity = r->what % IDENTITIES,
		.format = r->format % 4,
		.first_line = r->first_line,
		.lines_total = r->total_or_offset,
		.name = { .bytes = bytes,
			  .len = name_len,
			  .kind = r->kinds & 7,
			  .is_cut = r->kinds & 64 },
		.file = { .bytes = bytes + name_len,
			  .len = file_len,
			  .kind = r->kinds >> 3 & 7,
			  .is_cut = r->kinds & 128 },
	};

	code_table_add(t, &d);
}

static void check(struct code_table *t)
{
	const struct code_stats *stats = code_table_stats(t);
	size_t held = 0;

	for (uint64_t identity = 0; identity < IDENTITIES; identity++) {
		const struct code *c = code_find(t, identity);
		enum line_state line;

		if (!c)
			continue;
		held++;
		if (c->identity != identity || c->name[c->name_len] || c->file[c->file_len])
			abort();
		for (uint32_t instr = 0; instr < 64; instr += 6)
			if (code_line(c, instr, &line) < 1)
				abort();
	}
	if (held != stats->codes || (held > 1 && stats->bytes > BYTES_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct code_table *t = NULL;
	struct record r;
	size_t body;

	if (code_table_new(BYTES_MAX, &t) < 0)
		abort();
	while (len > sizeof(r)) {
		memcpy(&r, bytes, sizeof(r));
		bytes += sizeof(r);
		len -= sizeof(r);
		body = (size_t)r.name_len + r.file_len < len ? (size_t)r.name_len + r.file_len
							     : len;
		if (r.what & 128)
			add(t, &r, bytes, body);
		else
			code_table_add_lines(t, r.what % IDENTITIES, r.total_or_offset, bytes,
					     body);
		check(t);
		bytes += body;
		len -= body;
	}
	code_table_free(t);
	return 0;
}
