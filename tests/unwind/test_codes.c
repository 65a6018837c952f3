/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Identities of code objects: another object at the same address is another one, always. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "rows.h"
#include "world.h"

static const __u8 lines_a[200] = { 2, 1, 4, 1 };
static const __u8 lines_b[200] = { 2, 1, 4, 2 };
static const __u8 lines_c[200] = { [95] = 1 };

static void make_parts(struct world *w, struct code_parts *p)
{
	*p = (struct code_parts){
		.name = world_str(w, "run"),
		.qualname = world_str(w, "Worker.run"),
		.filename = world_str(w, "/srv/app/worker.py"),
		.lines = world_bytes(w, lines_a, sizeof(lines_a)),
		.first_line = 10,
		.version = 7,
	};
}

static void write_text(struct world *w, __u64 s, const char *ascii, __s64 hash)
{
	memory_write_u64(w->m, s + w->off->str_length, strlen(ascii));
	memory_write_u64(w->m, s + w->off->str_hash, hash);
	memory_write(w->m, s + w->off->str_ascii_data, ascii, strlen(ascii));
}

/* Changes something of a code object, which is written again afterwards. */
enum change {
	CHANGE_NOTHING,
	CHANGE_NAME,
	CHANGE_QUALNAME,
	CHANGE_FILENAME,
	CHANGE_LINES,
	CHANGE_FIRST_LINE,
	CHANGE_VERSION,
	CHANGE_NAME_CONTENT, /* behind the same pointer, as are all below */
	CHANGE_NAME_LENGTH,
	CHANGE_FILENAME_CONTENT, /* the same length and no hash */
	CHANGE_FILENAME_END,     /* only its last character */
	CHANGE_FILENAME_LENGTH,
	CHANGE_LINES_CONTENT,
	CHANGE_LINES_CONTENT_LATER, /* in the last byte of its begin that counts */
	CHANGE_LINES_CONTENT_LAST,  /* in the first byte of its end that counts */
	CHANGE_LINES_LENGTH,
	CHANGE_FILENAME_HASH, /* taken now: the same object */
	CHANGE_NAME_HASH,
};

/* The name that people are told. */
static __u64 name_of(const struct world *w, const struct code_parts *p)
{
	return w->off->code_qualname != OFF_NONE ? p->qualname : p->name;
}

static void change(struct world *w, struct code_parts *p, enum change what)
{
	const struct py_offsets *off = w->off;

	switch (what) {
	case CHANGE_NOTHING:
		break;
	case CHANGE_NAME:
		p->name = world_str(w, "run");
		break;
	case CHANGE_QUALNAME:
		p->qualname = world_str(w, "Other.run");
		break;
	case CHANGE_FILENAME:
		p->filename = world_str(w, "/srv/app/other.py");
		break;
	case CHANGE_LINES:
		p->lines = world_bytes(w, lines_a, sizeof(lines_a));
		break;
	case CHANGE_FIRST_LINE:
		p->first_line++;
		break;
	case CHANGE_VERSION:
		p->version++;
		break;
	case CHANGE_NAME_CONTENT:
		write_text(w, name_of(w, p), "put", 123456);
		break;
	case CHANGE_NAME_LENGTH:
		write_text(w, name_of(w, p), "ru", 123456);
		break;
	case CHANGE_FILENAME_CONTENT:
		write_text(w, p->filename, "/srv/bar/worker.py", -1);
		break;
	case CHANGE_FILENAME_END:
		write_text(w, p->filename, "/srv/app/worker.pz", -1);
		break;
	case CHANGE_FILENAME_LENGTH:
		write_text(w, p->filename, "/srv/app/work.py", -1);
		break;
	case CHANGE_LINES_CONTENT:
		memory_write(w->m, p->lines + off->bytes_data, lines_b, sizeof(lines_b));
		break;
	case CHANGE_LINES_CONTENT_LATER:
		memory_write(w->m, p->lines + off->bytes_data + 4, lines_c + 4,
			     sizeof(lines_c) - 4);
		break;
	case CHANGE_LINES_CONTENT_LAST:
		memory_write(w->m, p->lines + off->bytes_data + 104, "x", 1);
		break;
	case CHANGE_LINES_LENGTH:
		memory_write_u64(w->m, p->lines + off->bytes_size, sizeof(lines_a) - 2);
		break;
	case CHANGE_FILENAME_HASH:
		write_text(w, p->filename, "/srv/app/worker.py", 987654321);
		break;
	case CHANGE_NAME_HASH:
		write_text(w, p->name, "run", 987654321);
		break;
	}
}

struct identity_case {
	const char *name;
	enum change what;
	unsigned minor_min, minor_max; /* where it is compared */
	bool is_other;
};

static void check_identity(const struct row *row, const struct identity_case *c)
{
	struct code_parts parts;
	__u64 code, before, after;
	struct world w;

	world_init(&w, &row->off);
	make_parts(&w, &parts);
	write_text(&w, parts.filename, "/srv/app/worker.py", -1); /* as most of them are */
	if (c->what == CHANGE_NAME_HASH)
		write_text(&w, parts.name, "run", -1);
	code = world_code_of(&w, &parts);
	before = unwinder_identity(w.off, code, WORLD_PROCESS, 0);
	change(&w, &parts, c->what);
	world_code_write(&w, code, &parts);
	after = unwinder_identity(w.off, code, WORLD_PROCESS, 0);
	if (!before || !after)
		world_fail(row->name, c->name, "not readable");
	else if ((before != after) != c->is_other)
		world_fail(row->name, c->name, "%s identity, want %s",
			   before != after ? "another" : "the same",
			   c->is_other ? "another" : "the same");
	world_release(&w);
}

static void test_identity_changes_with_what_it_names(void **state)
{
	static const struct identity_case cases[] = {
		{ "nothing", CHANGE_NOTHING, 6, 15, false },
		{ "name", CHANGE_NAME, 6, 15, true },
		{ "qualname", CHANGE_QUALNAME, 11, 15, true },
		{ "no qualname there", CHANGE_QUALNAME, 6, 10, false },
		{ "file name", CHANGE_FILENAME, 6, 15, true },
		{ "line table", CHANGE_LINES, 6, 15, true },
		{ "first line", CHANGE_FIRST_LINE, 6, 15, true },
		{ "version", CHANGE_VERSION, 12, 15, true },
		{ "content of the name", CHANGE_NAME_CONTENT, 6, 11, true },
		{ "length of the name", CHANGE_NAME_LENGTH, 6, 11, true },
		{ "content of the file name", CHANGE_FILENAME_CONTENT, 6, 11, true },
		{ "end of the file name", CHANGE_FILENAME_END, 6, 11, true },
		{ "length of the file name", CHANGE_FILENAME_LENGTH, 6, 11, true },
		{ "content of the line table", CHANGE_LINES_CONTENT, 6, 11, true },
		{ "byte 95 of the line table", CHANGE_LINES_CONTENT_LATER, 6, 11, true },
		{ "byte 104 of the line table", CHANGE_LINES_CONTENT_LAST, 6, 11, true },
		{ "length of the line table", CHANGE_LINES_LENGTH, 6, 11, true },
		{ "hash of the file name taken later", CHANGE_FILENAME_HASH, 6, 15, false },
		{ "hash of the name taken later", CHANGE_NAME_HASH, 6, 15, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned v = 0; v < row_count; v++)
			if (rows[v].off.minor >= cases[i].minor_min &&
			    rows[v].off.minor <= cases[i].minor_max)
				check_identity(&rows[v], &cases[i]);
}

static void test_identity_is_one_of_process_and_address(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct code_parts parts;
		__u64 a, b;
		struct world w;

		world_init(&w, &rows[v].off);
		make_parts(&w, &parts);
		a = world_code_of(&w, &parts);
		b = world_code_of(&w, &parts);
		if (unwinder_identity(w.off, a, WORLD_PROCESS, 1) ==
		    unwinder_identity(w.off, a, WORLD_PROCESS + 2, 2))
			world_fail(rows[v].name, "two processes", "one identity");
		if (unwinder_identity(w.off, a, WORLD_PROCESS, 1) ==
		    unwinder_identity(w.off, b, WORLD_PROCESS, 1))
			world_fail(rows[v].name, "two addresses", "one identity");
		world_release(&w);
	}
}

/* Two processes of a family, the other of which has changed it: what it says, at the same place. */
static void check_family(const struct row *row, enum change what, bool is_other)
{
	struct code_parts parts;
	__u64 code, before, after;
	struct world w;

	world_init(&w, &row->off);
	make_parts(&w, &parts);
	code = world_code_of(&w, &parts);
	before = unwinder_identity(w.off, code, WORLD_PROCESS, 1);
	change(&w, &parts, what);
	after = unwinder_identity(w.off, code, WORLD_PROCESS + 2, 1);
	if (!before || (before != after) != is_other)
		world_fail(row->name, "a family", "change %d: %s identity", what,
			   before != after ? "another" : "the same");
	world_release(&w);
}

static void test_identity_is_one_of_a_family(void **state)
{
	static const enum change changes[] = {
		CHANGE_NAME_CONTENT,        CHANGE_NAME_LENGTH,        CHANGE_FILENAME_END,
		CHANGE_LINES_CONTENT_LATER, CHANGE_LINES_CONTENT_LAST, CHANGE_LINES_LENGTH,
	};

	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		check_family(&rows[v], CHANGE_NOTHING, false);
		for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
			check_family(&rows[v], changes[i], true);
	}
}

/* A line table shorter than what is compared ends the page; behind it there is nothing. */
static void test_identity_reads_no_byte_behind_the_objects(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		const struct py_offsets *off = &rows[v].off;

		for (unsigned len = 0; len <= 100; len += len < 9 ? 1 : 13) {
			struct code_parts parts;
			__u64 code;
			struct world w;

			world_init(&w, off);
			make_parts(&w, &parts);
			w.heap = WORLD_HEAP + 0x10000000 + PAGE_BYTES - off->bytes_data - len;
			parts.lines = w.heap;
			memory_write_u64(w.m, parts.lines + off->bytes_size, len);
			memory_write(w.m, parts.lines + off->bytes_data, lines_a, len);
			w.heap = WORLD_HEAP + 0x20000000 + PAGE_BYTES - off->code_size;
			code = w.heap;
			world_code_write(&w, code, &parts);
			if (!unwinder_identity(off, code, WORLD_PROCESS, 0))
				world_fail(rows[v].name, "at the end of a page",
					   "not readable with %u bytes of lines", len);
			world_release(&w);
		}
	}
}

/* --- Trust, up to 3.11 --------------------------------------------------------------------------
 */

/* A stack of 64 frames that run one code object; the leaf runs another one. */
static __u64 trust_world(struct world *w, const struct py_offsets *off, struct code_parts *parts)
{
	__u64 code;

	world_init(w, off);
	make_parts(w, parts);
	code = world_code_of(w, parts);
	world_enter(w);
	for (unsigned i = 0; i < 64; i++)
		world_push(w, code, 2 * i);
	world_push(w, world_code(w, "leaf"), 0);
	world_publish(w);
	return code;
}

/* The same of 64 code objects: one that repeats is compared once a walk. */
static void trust_many_world(struct world *w, const struct py_offsets *off)
{
	struct code_parts parts;

	world_init(w, off);
	make_parts(w, &parts);
	world_enter(w);
	for (unsigned i = 0; i < 64; i++)
		world_push(w, world_code_of(w, &parts), 2 * i);
	world_push(w, world_code(w, "leaf"), 0);
	world_publish(w);
}

/* How many of the frames behind the leaf have this identity. */
static unsigned frames_with(const struct unwind_result *r, __u64 id)
{
	unsigned count = 0;

	for (unsigned i = 1; i < r->depth; i++)
		count += r->frames[i].code == id;
	return count;
}

static void test_trust_grows_with_clean_samples(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct unwind_result r;
		size_t strict, trusted;
		struct world w;

		if (rows[v].off.code_version != OFF_NONE)
			continue;
		trust_many_world(&w, &rows[v].off);
		world_unwind(&w);
		if (unwinder_trust(WORLD_PROCESS) != 0)
			world_fail(rows[v].name, "new code objects", "trust %u",
				   unwinder_trust(WORLD_PROCESS));
		for (unsigned i = 0; i < 3; i++)
			world_unwind(&w);
		if (unwinder_trust(WORLD_PROCESS) != 3)
			world_fail(rows[v].name, "three clean samples", "trust %u",
				   unwinder_trust(WORLD_PROCESS));
		memory_use(w.m);
		world_unwind(&w);
		strict = memory_reads(w.m);
		unwinder_set_trust(WORLD_PROCESS, TRUST_SAMPLES - 1);
		world_unwind(&w);
		memory_use(w.m);
		r = world_unwind(&w);
		trusted = memory_reads(w.m);
		world_check("trusted", rows[v].name, &w, &r, UNWIND_COMPLETE, 65);
		/* 56 frames of 64 are spared the reads of two strings and of a line table. */
		if (strict < trusted + 56 * 3)
			world_fail(rows[v].name, "trusted", "%zu reads, %zu before", trusted,
				   strict);
		if (unwinder_trust(WORLD_PROCESS) != TRUST_SAMPLES)
			world_fail(rows[v].name, "trusted", "trust %u",
				   unwinder_trust(WORLD_PROCESS));
		world_release(&w);
	}
}

struct reuse_case {
	const char *name;
	__u32 trust;
	enum change what;
	unsigned min_seen, max_seen; /* of the 64 frames that show the new identity at once */
	__u32 trust_after;
};

static void check_reuse(const struct row *row, const struct reuse_case *c)
{
	struct code_parts parts;
	struct unwind_result r;
	__u64 code, before, after;
	unsigned seen;
	struct world w;

	code = trust_world(&w, &row->off, &parts);
	world_unwind(&w);
	before = unwinder_identity(w.off, code, WORLD_PROCESS, 0);
	unwinder_set_trust(WORLD_PROCESS, c->trust);
	change(&w, &parts, c->what);
	r = world_unwind(&w);
	seen = 64 - frames_with(&r, before);
	if (seen < c->min_seen || seen > c->max_seen)
		world_fail(row->name, c->name, "%u frames of 64 show the new object, want %u..%u",
			   seen, c->min_seen, c->max_seen);
	if (unwinder_trust(WORLD_PROCESS) != c->trust_after)
		world_fail(row->name, c->name, "trust %u, want %u", unwinder_trust(WORLD_PROCESS),
			   c->trust_after);
	if (c->trust_after == TRUST_NEVER) {
		after = unwinder_identity(w.off, code, WORLD_PROCESS, 0);
		for (unsigned i = 0; i < 10; i++)
			r = world_unwind(&w);
		if (frames_with(&r, after) != 64)
			world_fail(row->name, c->name, "%u frames of 64 afterwards",
				   frames_with(&r, after));
		if (unwinder_trust(WORLD_PROCESS) != TRUST_NEVER)
			world_fail(row->name, c->name, "trusted again");
	}
	world_release(&w);
}

static void test_trust_ends_with_one_reuse(void **state)
{
	static const struct reuse_case cases[] = {
		{ "strict", 5, CHANGE_NAME_CONTENT, 64, 64, TRUST_NEVER },
		{ "last strict sample", TRUST_SAMPLES - 1, CHANGE_LINES_CONTENT, 64, 64,
		  TRUST_NEVER },
		{ "trusted", TRUST_SAMPLES, CHANGE_NAME_CONTENT, 8, 64, TRUST_NEVER },
		{ "trusted, file name", TRUST_SAMPLES, CHANGE_FILENAME_LENGTH, 8, 64, TRUST_NEVER },
		{ "never trusted", TRUST_NEVER, CHANGE_LINES_LENGTH, 64, 64, TRUST_NEVER },
		{ "nothing changed", 5, CHANGE_NOTHING, 0, 0, 6 },
		{ "nothing changed, trusted", TRUST_SAMPLES, CHANGE_NOTHING, 0, 0, TRUST_SAMPLES },
		{ "a hash taken later is no reuse", 5, CHANGE_FILENAME_HASH, 0, 0, 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned v = 0; v < row_count; v++)
			if (rows[v].off.code_version == OFF_NONE)
				check_reuse(&rows[v], &cases[i]);
}

/* The leaf is compared in full however far the process is trusted. */
static void test_trust_never_covers_the_leaf(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++)
		for (unsigned salt = 0; salt < 8; salt++) {
			struct code_parts parts;
			struct unwind_result r;
			__u64 code, before;
			struct world w;

			if (rows[v].off.code_version != OFF_NONE)
				continue;
			world_init(&w, &rows[v].off);
			make_parts(&w, &parts);
			code = world_code_of(&w, &parts);
			world_enter(&w);
			world_push(&w, code, 0);
			world_publish(&w);
			unwinder_set_salt(salt);
			unwinder_set_trust(WORLD_PROCESS, TRUST_SAMPLES);
			world_unwind(&w);
			before = unwinder_identity(w.off, code, WORLD_PROCESS, 0);
			change(&w, &parts, CHANGE_NAME_CONTENT);
			r = world_unwind(&w);
			if (r.frames[0].code == before)
				world_fail(rows[v].name, "leaf", "old identity with salt %u", salt);
			world_release(&w);
		}
}

/* Processes that share a slot of the table: who reuses addresses is not forgotten for another. */
static void test_trust_that_is_lost_stays_lost(void **state)
{
	const __u64 process = 5, other = process + TRUST_SLOTS;

	(void)state;
	unwinder_set_trust(process, TRUST_NEVER);
	assert_int_equal(unwinder_trust(other), TRUST_NEVER);
	assert_int_equal(unwinder_trust(process), TRUST_NEVER);
	unwinder_set_trust(process + 1, TRUST_SAMPLES);
	assert_int_equal(unwinder_trust(other + 1), 0);
}

/* --- Generations, 3.14 and later ----------------------------------------------------------------
 */

static void set_generation(struct world *w, __u64 interp, __u64 generation)
{
	memory_write_u64(w->m, interp + w->off->interp_code_generation, generation);
}

/* The leaf and one of its callers run code objects on pages of their own. */
static __u64 generation_world(struct world *w, const struct py_offsets *off,
			      struct code_parts *parts)
{
	__u64 code, leaf;

	world_init(w, off);
	set_generation(w, w->interp, 0);
	make_parts(w, parts);
	world_new_page(w);
	code = world_code_of(w, parts);
	world_new_page(w);
	leaf = world_code(w, "leaf");
	world_new_page(w);
	world_enter(w);
	world_push(w, code, 2);
	world_push(w, leaf, 4);
	world_publish(w);
	return code;
}

static void test_generation_saves_the_read_of_a_code_object(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct code_parts parts;
		struct unwind_result r;
		__u64 code, before;
		struct world w;

		if (!rows[v].off.interp_code_generation)
			continue;
		code = generation_world(&w, &rows[v].off, &parts);
		r = world_unwind(&w);
		before = r.frames[1].code;
		world_check("first sample", rows[v].name, &w, &r, UNWIND_COMPLETE, 2);

		memory_use(w.m);
		r = world_unwind(&w);
		if (memory_is_touched(w.m, code))
			world_fail(rows[v].name, "generation unmoved", "code object read");
		world_check("generation unmoved", rows[v].name, &w, &r, UNWIND_COMPLETE, 2);

		set_generation(&w, w.interp, 1);
		change(&w, &parts, CHANGE_FIRST_LINE);
		world_code_write(&w, code, &parts);
		memory_use(w.m);
		r = world_unwind(&w);
		if (!memory_is_touched(w.m, code))
			world_fail(rows[v].name, "generation moved", "code object not read");
		if (r.frames[1].code == before)
			world_fail(rows[v].name, "generation moved", "old identity");
		world_check("generation moved", rows[v].name, &w, &r, UNWIND_COMPLETE, 2);
		world_release(&w);
	}
}

/* Each interpreter counts for itself: equal numbers of two of them say nothing. */
static void test_generation_is_one_of_an_interpreter(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct code_parts parts;
		struct unwind_result r;
		__u64 code, sub, tstate;
		struct world w;

		if (!rows[v].off.interp_code_generation)
			continue;
		code = generation_world(&w, &rows[v].off, &parts);
		world_unwind(&w);

		/* Freed by the main interpreter, taken by another that has not freed any. */
		set_generation(&w, w.interp, 1);
		change(&w, &parts, CHANGE_FIRST_LINE);
		world_code_write(&w, code, &parts);
		sub = world_interp(&w);
		memory_write_u64(w.m, sub + w.off->interp_id, 0);
		set_generation(&w, sub, 0);
		tstate = world_tstate(&w, sub, WORLD_THREAD);
		world_set_status(&w, w.tstate, 3);
		world_set_status(&w, tstate, 0xb);
		memory_write_u64(w.m, w.tstate + w.off->tstate_frame, 0);
		w.tstate = tstate;
		world_publish(&w);
		r = world_unwind(&w);
		world_check("another interpreter", rows[v].name, &w, &r, UNWIND_COMPLETE, 2);
		world_release(&w);
	}
}

/* The id of the interpreter that the thread runs in, which is not the main one. */
static void set_interpreter(struct world *w, __u64 id)
{
	memory_write_u64(w->m, world_interp(w) + w->off->interp_id, 0);
	memory_write_u64(w->m, w->interp + w->off->interp_id, id);
}

/* A subinterpreter that ends makes room for the next one, which counts from 0 again: its id
 * differs. */
static void test_generation_is_not_that_of_an_interpreter_before(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct code_parts parts;
		struct unwind_result r;
		__u64 code, before;
		struct world w;

		if (!rows[v].off.interp_code_generation)
			continue;
		code = generation_world(&w, &rows[v].off, &parts);
		set_interpreter(&w, 1);
		r = world_unwind(&w);
		before = r.frames[1].code;
		set_interpreter(&w, 2);
		change(&w, &parts, CHANGE_FIRST_LINE);
		world_code_write(&w, code, &parts);
		r = world_unwind(&w);
		if (r.frames[1].code == before)
			world_fail(rows[v].name, "the next interpreter", "old identity");
		world_release(&w);
	}
}

/* --- Interpreters -------------------------------------------------------------------------------
 */

/* A code object of the next interpreter, at the same place, may be equal in all that is read. */
static void test_identity_is_of_one_interpreter(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		struct unwind_result r;
		struct world w;
		__u64 before[2];

		if (!rows[v].off.interp_id || rows[v].off.interp_id == OFF_NONE)
			continue;
		world_init(&w, &rows[v].off);
		world_enter(&w);
		world_recurse(&w, 2);
		world_publish(&w);
		set_interpreter(&w, 1);
		r = world_unwind(&w);
		before[0] = r.frames[0].code;
		before[1] = r.frames[1].code;
		set_interpreter(&w, 2);
		r = world_unwind(&w);
		if (r.frames[0].code == before[0] || r.frames[1].code == before[1])
			world_fail(rows[v].name, "the next interpreter", "old identity");
		world_release(&w);
	}
}

/* --- What is left to describe -------------------------------------------------------------------
 */

static void test_unsent_lists_each_code_object_once(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		const struct py_scratch *s = unwinder_scratch();
		struct world w;

		world_init(&w, &rows[v].off);
		world_enter(&w);
		world_recurse(&w, 3);
		for (unsigned i = 0; i < 100; i++)
			world_push(&w, w.want[i % 3].code, 2 * i);
		world_publish(&w);
		world_unwind(&w);
		if (s->walk.unsent != 3 || s->walk.deferred)
			world_fail(rows[v].name, "recursion", "%u to describe, %u deferred",
				   s->walk.unsent, s->walk.deferred);
		if (s->unsent[0].addr != w.want[w.want_depth - 1].code)
			world_fail(rows[v].name, "recursion", "the leaf is not the first");
		for (unsigned i = 0; i < 3; i++)
			unwinder_mark_sent(s->unsent[i].id);
		world_unwind(&w);
		if (s->walk.unsent)
			world_fail(rows[v].name, "all sent", "%u to describe", s->walk.unsent);
		world_release(&w);
	}
}

static void test_unsent_is_bounded_and_leaf_first(void **state)
{
	(void)state;
	for (unsigned v = 0; v < row_count; v++) {
		const struct py_scratch *s = unwinder_scratch();
		struct world w;

		world_init(&w, &rows[v].off);
		world_enter(&w);
		for (unsigned i = 0; i < CODES_PER_SAMPLE + 5; i++)
			world_push(&w, world_code(&w, "each its own"), 2 * i);
		world_publish(&w);
		world_unwind(&w);
		if (s->walk.unsent != CODES_PER_SAMPLE || s->walk.deferred != 5)
			world_fail(rows[v].name, "too many", "%u to describe, %u deferred",
				   s->walk.unsent, s->walk.deferred);
		for (unsigned i = 0; i < CODES_PER_SAMPLE; i++)
			if (s->unsent[i].addr != w.want[w.want_depth - 1 - i].code ||
			    s->unsent[i].id != s->records[i].code)
				world_fail(rows[v].name, "too many", "number %u is not frame %u's",
					   i, i);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_identity_changes_with_what_it_names),
		WORLD_TEST(test_identity_is_one_of_process_and_address),
		WORLD_TEST(test_identity_is_one_of_a_family),
		WORLD_TEST(test_identity_reads_no_byte_behind_the_objects),
		WORLD_TEST(test_trust_grows_with_clean_samples),
		WORLD_TEST(test_trust_ends_with_one_reuse),
		WORLD_TEST(test_trust_never_covers_the_leaf),
		WORLD_TEST(test_generation_saves_the_read_of_a_code_object),
		WORLD_TEST(test_generation_is_one_of_an_interpreter),
		WORLD_TEST(test_generation_is_not_that_of_an_interpreter_before),
		WORLD_TEST(test_identity_is_of_one_interpreter),
		WORLD_TEST(test_trust_that_is_lost_stays_lost),
		WORLD_TEST(test_unsent_lists_each_code_object_once),
		WORLD_TEST(test_unsent_is_bounded_and_leaf_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
