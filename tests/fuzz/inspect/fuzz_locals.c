/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reader of objects over recorded memory: of the functions in tests/workloads/values.py, all
 * that locals_read() read. Input: a byte for the version (as offsets_of() below), one for the
 * options, the addresses of a frame and of its code object (u64 each), then blocks: address (u64),
 * length (u16), bytes. Elsewhere there is nothing, or (an option) the input itself, over and over,
 * so that every pointer leads somewhere, also back.
 *
 * No input may make it run on, or say more than its limits let it, or what a terminal must not
 * have.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../made_offsets.h"
#include "base/utf8.h"
#include "inspect/locals.h"

#define HEAD_BYTES 18
#define READS 20000
#define OPTION_FULL 1
#define OPTION_SELF 2
#define OPTION_SECRETS 4
#define OPTION_EVERYWHERE 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct memory {
	const uint8_t *bytes;
	size_t len;
	bool is_everywhere;
	uint32_t reads;
};

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

static uint64_t number_at(const uint8_t *p, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, p, bytes);
	return value;
}

/* What of a read lies in a block is taken from there; it may go over several. */
static size_t read_block(const struct memory *m, uint64_t addr, uint8_t *out, size_t len)
{
	for (size_t at = HEAD_BYTES; at + 10 <= m->len;) {
		uint64_t start = number_at(m->bytes + at, 8), n = number_at(m->bytes + at + 8, 2);

		at += 10;
		if (n > m->len - at)
			return 0;
		if (addr - start < n) {
			n -= addr - start;
			n = n < len ? n : len;
			memcpy(out, m->bytes + at + (addr - start), n);
			return n;
		}
		at += n;
	}
	return 0;
}

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = arg;

	require(len <= OBJECT_READ_BYTES && ++m->reads <= READS);
	for (size_t done = 0, n; done < len; done += n) {
		uint8_t *out = (uint8_t *)buf + done;

		n = read_block(m, addr + done, out, len - done);
		if (!n && !m->is_everywhere)
			return -EFAULT;
		if (!n) {
			*out = m->bytes[(addr + done) % m->len];
			n = 1;
		}
	}
	return 0;
}

/* 3.6 to 3.15, in both kinds of build. */
static struct py_offsets offsets_of(uint8_t choice)
{
	unsigned int minor = 6 + (choice & 15) % 10;
	struct py_offsets off = made_offsets(minor, choice & 16);

	if (minor >= 14) {
		off.frame_size = 80;
		off.tagged_mask = 3;
		off.str_kind_shift = choice & 16 ? 8 : 2;
		off.str_compact_bit = choice & 16 ? 11 : 5;
		off.str_ascii_bit = choice & 16 ? 12 : 6;
	}
	return off;
}

static void check_text(const char *text, size_t most)
{
	size_t len = strlen(text);

	require(len <= most);
	for (size_t at = 0; at < len;) {
		bool is_plain;

		at += utf8_next_plain(text + at, len - at, &is_plain);
		require(is_plain);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct memory m = { bytes, len, false, 0 };
	static struct object_reader r;
	struct locals_options o = { 0 };
	struct inspect_locals locals;
	struct py_offsets off;
	size_t most;

	if (len < HEAD_BYTES)
		return 0;
	off = offsets_of(bytes[0]);
	m.is_everywhere = bytes[1] & OPTION_EVERYWHERE;
	o.has_self = bytes[1] & OPTION_SELF;
	o.render.has_secrets = bytes[1] & OPTION_SECRETS;
	o.render.limits = bytes[1] & OPTION_FULL ? &render_full : &render_short;
	require(!object_reader_init(&r, &off, READS, read_memory, &m));
	locals_read(&r, number_at(bytes + 2, 8), number_at(bytes + 10, 8), &o, &locals);
	require(r.reads_left + m.reads <= READS && locals.len <= LOCALS_MAX);
	/* What has begun is ended: a str whose characters are ten bytes each, and names around. */
	most = o.render.limits->bytes + 10 * o.render.limits->chars + 8192;
	for (size_t i = 0; i < locals.len; i++) {
		check_text(locals.items[i].name, 2048);
		if (!locals.items[i].value)
			continue;
		check_text(locals.items[i].type, 2048);
		check_text(locals.items[i].value, most);
	}
	locals_release(&locals);
	return 0;
}
