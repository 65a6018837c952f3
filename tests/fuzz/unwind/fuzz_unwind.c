/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwinder over any memory and any offsets that offsets_check() lets pass. Input: see
 * tests/unwind/tape.h. No input may make it read past its work space, run on, or say what cannot
 * be: a message longer than its parts, a depth beyond the limit.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "target/offsets.h"
#include "unwind/memory.h"
#include "unwind/rows.h"
#include "unwind/tape.h"
#include "unwind/unwinder.h"

#define PROCESS_ID 0x5eed5eed5eed5eedull
/* Two lists looked at; for each step a frame, a block, a code object and what is behind it. */
#define READS_MAX (2 * LIST_STEPS + 16 * WALK_STEPS)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

static uint16_t u16_at(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

/* Changes offsets as the input says, if they stay such that the unwinder would get them. */
static size_t change_offsets(struct py_offsets *off, const uint8_t *bytes, size_t len)
{
	struct py_offsets changed = *off;
	size_t count = bytes[TAPE_HEAD - 1] % 16, at = TAPE_HEAD;

	for (; count && at + 3 <= len; count--, at += 3)
		memcpy((uint8_t *)&changed + 2 * (bytes[at] % (sizeof(changed) / 2)),
		       bytes + at + 1, 2);
	changed.frame_kind %= FRAME_INTERNAL + 1;
	if (offsets_check(&changed) == 0)
		*off = changed;
	else
		err_clear();
	return at;
}

static void lay_out(struct memory *m, const uint8_t *bytes, size_t len, size_t at)
{
	static const uint8_t zero[1];

	while (at + 3 <= len) {
		uint16_t addr = u16_at(bytes + at);
		size_t n = bytes[at + 2];

		at += 3;
		if (n > len - at)
			n = len - at;
		if (n > TAPE_MASK + 1 - addr)
			n = TAPE_MASK + 1 - addr;
		if (n)
			memory_write(m, addr, bytes + at, n);
		else if (!memory_is_present(m, addr))
			memory_write(m, addr & ~(PAGE_BYTES - 1), zero, 1);
		at += n;
	}
}

static void check_walk(const struct unwind_result *r, const struct memory *m)
{
	const struct py_scratch *s = unwinder_scratch();

	require(memory_reads(m) <= READS_MAX);
	if (r->error) {
		/* PY_LATE: a list without an end took all steps of a search. */
		require(r->error == PY_FAULT || r->error == PY_NONE || r->error == PY_LATE);
		return;
	}
	require(r->depth <= FRAMES_MAX);
	require(r->status <= UNWIND_INVALID);
	require(s->walk.unsent <= CODES_PER_SAMPLE);
}

static void describe(const struct py_offsets *off, struct py_unsent u)
{
	struct code_event e;
	struct lines_event l;
	int n = unwinder_describe(off, u.id, u.addr);

	if (n < 0) {
		require(n == PY_FAULT);
		return;
	}
	memcpy(&e, unwinder_scratch()->message, sizeof(e));
	require(e.filename_bytes <= STRING_BYTES_MAX && e.name_bytes <= STRING_BYTES_MAX);
	require(e.lines_bytes <= LINES_CHUNK && e.lines_bytes <= e.lines_total);
	require((size_t)n == sizeof(e) + e.filename_bytes + e.name_bytes + e.lines_bytes);
	require((size_t)n <= sizeof(unwinder_scratch()->message));
	for (uint32_t chunk = 1; chunk < LINES_CHUNKS_MAX; chunk++) {
		n = unwinder_describe_lines(u.id, e.lines_addr, e.lines_total, chunk);
		if (n < 0)
			break;
		memcpy(&l, unwinder_scratch()->message, sizeof(l));
		require(l.bytes <= LINES_CHUNK && (size_t)n == sizeof(l) + l.bytes);
		require(l.offset + l.bytes <= e.lines_total);
	}
	unwinder_mark_sent(u.id);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct py_thread thread = { .process = PROCESS_ID, .tid = 1 };
	struct py_offsets off;
	struct memory *m;

	if (len < TAPE_HEAD || len > TAPE_BYTES_MAX)
		return 0;
	off = rows[bytes[0] % row_count].off;
	thread.runtime = u16_at(bytes + 2);
	thread.pointer = u16_at(bytes + 4);
	m = memory_new();
	memory_fold(m, TAPE_MASK);
	lay_out(m, bytes, len, change_offsets(&off, bytes, len));
	if (bytes[1] & TAPE_SWAPPED)
		for (__u64 addr = PAGE_BYTES; addr <= TAPE_MASK; addr += 2 * PAGE_BYTES)
			memory_swap_out(m, addr, 1);
	unwinder_reset();
	if (bytes[1] & TAPE_TRUSTED)
		unwinder_set_trust(PROCESS_ID, TRUST_SAMPLES);

	/* In an interrupt, again with warm caches, then in task work. */
	for (int i = 0; i < 3; i++) {
		struct py_scratch *s = unwinder_scratch();
		struct unwind_result r;

		memory_use(m);
		r = i < 2 ? unwind(&off, &thread) : unwind_paged(&off, &thread);
		if (i < 2)
			check_walk(&r, m);
		unwinder_opcode(&off);
		for (uint32_t u = 0; !r.error && u < s->walk.unsent; u++)
			describe(&off, s->unsent[u]);
	}
	memory_free(m);
	return 0;
}
