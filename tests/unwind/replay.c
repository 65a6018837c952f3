/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwinds threads of a live interpreter on the host, out of a recording of its memory:
 *
 *	unwind_replay PID MINOR IDENT:TID...
 *
 * The first walk records the pages it touches; all later ones run from the recording alone. One
 *JSON line a thread on stdout. Then pages of the recording are taken away one at a time: what a
 *walk still finds must be the leaf end of the same stack, and say that it is not whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "symbolize/code.h"
#include "target/mem.h"
#include "target/runtime.h"

#include "memory.h"
#include "unwinder.h"

#define PROCESS_ID 0x5eed5eed5eed5eedull
#define ROUNDS_MAX 100 /* samples until all code objects of a stack are known */
#define TAKEN_MAX 48   /* pages taken away from one thread's recording */
#define TOUCHED_MAX 4096

struct replay {
	pid_t pid;
	struct py_offsets off;
	__u64 runtime;
	struct memory *m;
	struct code_table *codes;
};

static int page_of_process(void *ctx, __u64 page_addr, __u8 *page)
{
	const struct replay *p = ctx;
	int r = mem_read(p->pid, page_addr, page, PAGE_BYTES);

	if (r < 0)
		err_clear(); /* a hole */
	return r;
}

static int find_offsets(struct replay *p, unsigned minor)
{
	_cleanup_(runtime_cache_freep) struct runtime_cache *cache = NULL;
	struct py_runtime found;
	int r;

	r = runtime_cache_new(&cache);
	if (r == 0)
		r = runtime_find(cache, p->pid, &found);
	if (r < 0)
		return r;
	if (found.offsets.minor != minor)
		return err_set(-EBADMSG, "3.%u taken for 3.%u", minor, found.offsets.minor);
	p->off = found.offsets;
	p->runtime = found.runtime_addr;
	return 0;
}

/* The pieces of a line table behind the first: 64 KiB as the kernel sends them, then from memory.
 */
static int add_lines(struct replay *p, __u64 id, __u64 lines_addr, __u32 total)
{
	const __u8 *message = unwinder_scratch()->message;
	struct lines_event e;
	int r = 0;

	for (__u32 chunk = 1; chunk * LINES_CHUNK < total && r >= 0; chunk++) {
		__u32 at = chunk * LINES_CHUNK, n = total - at;
		__u8 bytes[LINES_CHUNK];

		if (n > LINES_CHUNK)
			n = LINES_CHUNK;
		if (chunk >= LINES_CHUNKS_MAX) {
			r = mem_read(p->pid, lines_addr + at, bytes, n);
			if (r >= 0)
				r = code_table_add_lines(p->codes, id, at, bytes, n);
			continue;
		}
		r = unwinder_describe_lines(id, lines_addr, total, chunk);
		if (r < 0)
			return err_set(r, "line table piece %u not readable", chunk);
		memcpy(&e, message, sizeof(e));
		r = code_table_add_lines(p->codes, id, e.offset, message + sizeof(e), e.bytes);
	}
	return r < 0 ? r : 0;
}

static int add_code(struct replay *p, struct py_unsent u)
{
	const __u8 *bytes = unwinder_scratch()->message + sizeof(struct code_event);
	struct code_event e;
	int r;

	r = unwinder_describe(&p->off, u.id, u.addr);
	if (r < 0)
		return err_set(r, "code object at %" PRIx64 " not readable", (uint64_t)u.addr);
	memcpy(&e, unwinder_scratch()->message, sizeof(e));
	r = code_table_add(p->codes, &(struct code_desc){
					     .identity = e.code,
					     .format = p->off.lines,
					     .first_line = (int32_t)e.first_line,
					     .lines_total = e.lines_total,
					     .file = { bytes, e.filename_bytes, e.filename_kind,
						       e.is_cut & 1 },
					     .name = { bytes + e.filename_bytes, e.name_bytes,
						       e.name_kind, e.is_cut & 2 },
				     });
	if (r == 0 && e.lines_bytes)
		r = code_table_add_lines(p->codes, e.code, 0,
					 bytes + e.filename_bytes + e.name_bytes, e.lines_bytes);
	if (r == 0)
		r = add_lines(p, e.code, e.lines_addr, e.lines_total);
	return r;
}

/* Samples until user space knows all code objects of the stack. */
static int unwind_and_describe(struct replay *p, const struct py_thread *t,
			       struct unwind_result *out)
{
	const struct py_scratch *s = unwinder_scratch();
	int r;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		*out = unwind(&p->off, t);
		if (out->error)
			return err_set(-EFAULT, "no stack: %d", out->error);
		if (!s->walk.unsent)
			return 0;
		for (__u32 i = 0; i < s->walk.unsent; i++) {
			r = add_code(p, s->unsent[i]);
			if (r < 0)
				return r;
			unwinder_mark_sent(s->unsent[i].id);
		}
	}
	return err_set(-ELOOP, "code objects still unknown after %d samples", ROUNDS_MAX);
}

static void print_frame(struct json *j, struct replay *p, const struct frame_record *f)
{
	const struct code *code = code_find(p->codes, f->code);
	enum line_state line = LINE_EXACT;

	json_array(j);
	if (code || f->flags & FRAME_INTERPRETER) {
		json_string_len(j, code ? code->name : "", code ? code->name_len : 0);
		json_string_len(j, code ? code->file : "", code ? code->file_len : 0);
		json_i64(j, code ? code->first_line : 0);
		json_i64(j, code ? code_line(code, f->instr, &line) : 0);
		json_u64(j, f->instr);
		json_u64(j, f->flags);
		json_bool(j, line != LINE_EXACT);
	}
	json_end(j);
}

static int print_thread(struct replay *p, const struct py_thread *t, const struct unwind_result *r)
{
	struct json j;

	json_init(&j, stdout);
	json_object(&j);
	json_key(&j, "ident");
	json_u64(&j, t->pointer);
	json_key(&j, "status");
	json_u64(&j, r->status);
	json_key(&j, "flags");
	json_u64(&j, r->flags);
	json_key(&j, "frames");
	json_array(&j);
	for (unsigned i = 0; i < r->depth; i++)
		print_frame(&j, p, &r->frames[i]);
	json_end(&j);
	json_end(&j);
	putchar('\n');
	return json_finish(&j);
}

/* The same stack, or its leaf end if the walk says that it is cut. */
static bool is_leaf_end(const struct unwind_result *r, const struct frame_record *whole,
			unsigned depth)
{
	if (r->depth > depth || (r->depth < depth && !(r->status == UNWIND_FAULT && r->has_fault)))
		return false;
	for (unsigned i = 0; i < r->depth; i++) {
		if (r->frames[i].instr != whole[i].instr)
			return false;
		if (r->frames[i].code != whole[i].code &&
		    !(r->frames[i].flags & FRAME_UNREADABLE && r->has_fault))
			return false;
	}
	return true;
}

/* Takes pages away: in an interrupt the walk must be cut there; task work reads them in. */
static int take_pages(struct replay *p, const struct py_thread *t, const struct frame_record *whole,
		      unsigned depth)
{
	static __u64 pages[TOUCHED_MAX];
	struct unwind_result r;
	size_t count, step;

	memory_use(p->m);
	unwinder_reset();
	r = unwind(&p->off, t);
	if (r.error || r.depth != depth || !is_leaf_end(&r, whole, depth))
		return err_set(-EBADMSG, "another stack from the recording");
	count = memory_touched(p->m, pages, TOUCHED_MAX);
	if (count > TOUCHED_MAX)
		count = TOUCHED_MAX;
	step = count / TAKEN_MAX + 1;
	for (size_t i = 0; i < count; i += step) {
		memory_swap_out(p->m, pages[i], 1);
		unwinder_reset();
		r = unwind(&p->off, t);
		if (r.error ? r.error != PY_FAULT : !is_leaf_end(&r, whole, depth))
			return err_set(-EBADMSG,
				       "without page %" PRIx64
				       ": error %d, status %d, depth %u of %u",
				       (uint64_t)pages[i], r.error, r.status, r.depth, depth);
		unwinder_reset();
		r = unwind_paged(&p->off, t);
		if (r.error || r.depth != depth || r.has_fault || !is_leaf_end(&r, whole, depth))
			return err_set(-EBADMSG, "page %" PRIx64 " read in: another stack",
				       (uint64_t)pages[i]);
		memory_swap_in(p->m, pages[i], 1);
	}
	return 0;
}

static int replay_thread(struct replay *p, const struct py_thread *t)
{
	_cleanup_(freep) struct frame_record *whole = NULL;
	struct unwind_result result;
	int r;

	memory_set_source(p->m, page_of_process, p);
	memory_use(p->m);
	unwinder_reset();
	r = unwind_and_describe(p, t, &result);
	if (r == 0)
		r = print_thread(p, t, &result);
	if (r < 0)
		return r;
	whole = calloc(result.depth + 1, sizeof(*whole));
	if (!whole)
		return -ENOMEM;
	memcpy(whole, result.frames, result.depth * sizeof(*whole));
	memory_set_source(p->m, NULL, NULL);
	return take_pages(p, t, whole, result.depth);
}

static int replay(int argc, char **argv)
{
	struct replay p = { .pid = (pid_t)strtol(argv[1], NULL, 10) };
	int r;

	r = find_offsets(&p, (unsigned)strtoul(argv[2], NULL, 10));
	if (r < 0)
		return r;
	r = code_table_new(CODE_TABLE_BYTES_DEFAULT, &p.codes);
	if (r < 0)
		return r;
	p.m = memory_new();
	for (int i = 3; i < argc && r == 0; i++) {
		struct py_thread t = { .runtime = p.runtime, .process = PROCESS_ID };
		char *end;

		t.pointer = strtoull(argv[i], &end, 10);
		t.tid = *end == ':' ? (__u32)strtoul(end + 1, NULL, 10) : 0;
		r = replay_thread(&p, &t);
		if (r < 0)
			r = err_wrap(r, "thread %s", argv[i]);
	}
	memory_free(p.m);
	code_table_free(p.codes);
	return r;
}

int main(int argc, char **argv)
{
	int r;

	if (argc < 4) {
		fprintf(stderr, "usage: %s PID MINOR IDENT:TID...\n", argv[0]);
		return 2;
	}
	r = replay(argc, argv);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[0], err_message(r));
	return r < 0;
}
