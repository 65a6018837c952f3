/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/interpreter_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/allowance.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "target/elf.h"
#include "target/offsets.h"
#include "target/proc.h"
#include "target/version_scan.h"

#define OLD_RUNTIME_BYTES 256 /* between 3.6's two variables; 16 in the builds seen */

struct known_file {
	struct file_id id;
	bool is_used;
	bool is_searched;        /* .symtab too, not only the dynamic symbols */
	bool is_c_library_asked; /* whether it is a C library, as follows: */
	int8_t c_library_error;  /* 0, -ENOENT: none, -EBADMSG */
	struct c_library c_library;
	struct interpreter_file *binary; /* NULL: no Python */
};

struct runtime_cache {
	uint64_t misses;
	size_t len;
	struct known_file files[RUNTIME_CACHE_FILES * 2]; /* open addressing, linear probing */
};

/* Symbols that tell what a file is. _PyRuntime is CPython from 3.7 on. */
#define SYMBOL_RUNTIME "_PyRuntime"
#define SYMBOL_VERSION "Py_Version"                    /* 3.11 on: PY_VERSION_HEX, constant */
#define SYMBOL_BEFORE_RUNTIME "_PyThreadState_Current" /* 2.x, 3.0 to 3.6 */
#define SYMBOL_INTERP_HEAD "interp_head"               /* static; 3.6 */
#define SYMBOL_INTERP_HEAD_GETTER "PyInterpreterState_Head"
#define SYMBOL_PYPY "pypy_execute_source"
#define SYMBOL_TRACE_REFS "_Py_AddToAllObjects" /* Py_TRACE_REFS: PyObject is larger */
#define SYMBOL_JIT "_PyJIT_Compile"             /* hidden: in .symtab only */
#define SECTION_RUNTIME ".PyRuntime"            /* 3.10 on: holds _PyRuntime alone */

int runtime_cache_new(struct runtime_cache **out)
{
	struct runtime_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	*out = cache;
	return 0;
}

static void forget_all(struct runtime_cache *cache)
{
	for (size_t i = 0; i < RUNTIME_CACHE_FILES * 2; i++)
		free(cache->files[i].binary);
	memset(cache->files, 0, sizeof(cache->files));
	cache->len = 0;
}

void runtime_cache_free(struct runtime_cache *cache)
{
	if (!cache)
		return;
	forget_all(cache);
	free(cache);
}

uint64_t runtime_cache_misses(const struct runtime_cache *cache)
{
	return cache->misses;
}

/* The entry of this file, a new one with is_used false if it is not known. */
static struct known_file *cache_slot(struct runtime_cache *cache, const struct file_id *id)
{
	const size_t mask = RUNTIME_CACHE_FILES * 2 - 1;
	size_t at = hash_combine(hash_combine(hash_u64(id->inode), id->dev),
				 hash_combine(id->size, id->mtime_ns));

	for (;; at++) {
		struct known_file *file = &cache->files[at & mask];

		if (!file->is_used) {
			file->id = *id;
			return file;
		}
		if (file->id.inode == id->inode && file->id.dev == id->dev &&
		    file->id.size == id->size && file->id.mtime_ns == id->mtime_ns)
			return file;
	}
}

/* --- Versions --------------------------------------------------------------------------------- */

/*
 * is_static: in .symtab too. Never there alone: the process may have become another program since
 * its dynamic symbols were searched.
 */
static int find_symbol(const struct elf *elf, const char *name, bool is_static,
		       struct elf_symbol *out)
{
	int r = elf_dynamic_symbol(elf, name, out);

	return r < 0 && is_static ? elf_static_symbol(elf, name, out) : r;
}

/* The same of the process that maps the file. */
static int ask_version(const struct file_source *from, const struct elf *elf, uint32_t *version)
{
	uint64_t bias;
	int r;

	r = from->m ? elf_load_bias(elf, from->m, &bias) : -ENOENT;
	return r < 0 ? -EAGAIN : version_scan(from->pid, elf, bias, version);
}

/* Py_Version, 0 if the file has none. */
static uint32_t version_of_symbol(const struct elf *elf, bool is_static)
{
	struct elf_symbol symbol;
	uint64_t value;

	if (find_symbol(elf, SYMBOL_VERSION, is_static, &symbol) < 0 ||
	    elf_read(elf, symbol.vaddr, &value, sizeof(value)) < 0 || value > UINT32_MAX)
		return 0;
	return value;
}

/* --- One file --------------------------------------------------------------------------------- */

/* Where _PyRuntime is. -ENOENT: not in this file. */
static int find_runtime_symbol(const struct elf *elf, bool is_static, struct elf_symbol *out)
{
	struct elf_section section;
	int r = find_symbol(elf, SYMBOL_RUNTIME, is_static, out);

	if (!r)
		return 0;
	r = elf_section(elf, SECTION_RUNTIME, &section);
	if (r < 0 || !section.vaddr)
		return -ENOENT;
	*out = (struct elf_symbol){ section.vaddr, section.size };
	return 0;
}

int interpreter_versions_disagree(uint32_t a, const char *a_source, uint32_t b,
				  const char *b_source)
{
	char a_text[VERSION_TEXT_BYTES], b_text[VERSION_TEXT_BYTES];

	version_format(a, a_text);
	version_format(b, b_text);
	return err_set(-EBADMSG, "unknown build of CPython: %s says %s, %s says %s", a_source,
		       a_text, b_source, b_text);
}

/* Fills in version, head and offsets of a file with _PyRuntime. */
static int identify(const struct file_source *from, const struct elf *elf,
		    const struct elf_symbol *runtime, bool is_static, struct interpreter_file *b)
{
	uint32_t constant = version_of_symbol(elf, is_static);
	uint8_t table[DEBUG_OFFSETS_BYTES];
	size_t len = sizeof(table);
	struct elf_symbol symbol;
	int r;

	if (runtime->size && runtime->size < len)
		len = runtime->size;
	if (!elf_read(elf, runtime->vaddr, table, len) &&
	    debug_offsets_version(table, len, &b->version)) {
		if (constant && constant != b->version)
			return interpreter_versions_disagree(b->version, "_Py_DebugOffsets",
							     constant, SYMBOL_VERSION);
		r = debug_offsets_parse(table, len, &b->offsets);
		if (r < 0)
			return r;
		b->offsets.is_jit =
			b->offsets.minor == 13 && !elf_static_symbol(elf, SYMBOL_JIT, &symbol);
		memcpy(b->head, table, sizeof(b->head));
		return 0;
	}
	b->version = constant;
	if (!constant) {
		b->is_from_memory = true;
		r = ask_version(from, elf, &b->version);
		if (r < 0)
			return r;
	}
	return offsets_find(b->version, runtime->size,
			    !find_symbol(elf, SYMBOL_TRACE_REFS, is_static, &symbol), &b->offsets);
}

/* What exported PyInterpreterState_Head() returns, of which it does nothing but that. */
static int interp_head_of_getter(const struct elf *elf, bool is_static, uint64_t *vaddr)
{
#ifdef __x86_64__
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t frame[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push rbp; mov rbp, rsp */
	static const uint8_t load[] = { 0x48, 0x8b, 0x05 };        /* mov rax, [rip + disp32] */
	uint8_t code[sizeof(endbr64) + sizeof(frame) + sizeof(load) + sizeof(int32_t)];
	struct elf_symbol symbol;
	int32_t distance;
	size_t at = 0;

	if (find_symbol(elf, SYMBOL_INTERP_HEAD_GETTER, is_static, &symbol) ||
	    elf_read(elf, symbol.vaddr, code, sizeof(code)))
		return -ENOENT;
	if (!memcmp(code + at, endbr64, sizeof(endbr64)))
		at += sizeof(endbr64);
	if (!memcmp(code + at, frame, sizeof(frame)))
		at += sizeof(frame);
	if (memcmp(code + at, load, sizeof(load)))
		return -ENOENT;
	memcpy(&distance, code + at + sizeof(load), sizeof(distance));
	*vaddr = symbol.vaddr + at + sizeof(load) + sizeof(distance) + distance;
	return 0;
#else
	(void)elf, (void)is_static, (void)vaddr;
	return -ENOENT;
#endif
}

/* Where 3.6's interp_head is, a static variable, which a stripped file does not name. */
static int find_interp_head(const struct elf *elf, bool is_static, uint64_t *vaddr)
{
	struct elf_symbol symbol;

	if (!elf_static_symbol(elf, SYMBOL_INTERP_HEAD, &symbol)) {
		*vaddr = symbol.vaddr;
		return 0;
	}
	if (!interp_head_of_getter(elf, is_static, vaddr))
		return 0;
	return err_set(-EBADMSG, "CPython 3.6 whose list of interpreters cannot be found: stripped "
				 "of " SYMBOL_INTERP_HEAD);
}

/*
 * 3.6 has two variables for what _PyRuntime holds later: where both are, seen from the first, takes
 * its place. They are defined next to each other (Python/pystate.c).
 */
static int place_old_runtime(const struct elf *elf, bool is_static, struct interpreter_file *b,
			     struct elf_symbol *current)
{
	uint64_t head = 0, first = current->vaddr, last;
	int r;

	r = find_interp_head(elf, is_static, &head);
	if (r < 0)
		return r;
	last = head > first ? head : first;
	first = head > first ? first : head;
	if (last - first > OLD_RUNTIME_BYTES || first % 8 || last % 8)
		return err_set(-EBADMSG, "unknown build of CPython 3.6: " SYMBOL_INTERP_HEAD
					 " is far from " SYMBOL_BEFORE_RUNTIME);
	b->offsets.runtime_interpreters_head = head - first;
	b->offsets.runtime_tstate_current = current->vaddr - first;
	current->vaddr = first;
	return offsets_check(&b->offsets);
}

/*
 * A Python, but none with _PyRuntime: 3.6, for which *runtime is set to what takes its place, or
 * one that is refused by name. -ENOENT: no Python at all.
 */
static int identify_other(const struct file_source *from, const struct elf *elf, bool is_static,
			  struct interpreter_file *b, struct elf_symbol *runtime)
{
	struct elf_symbol symbol;
	int r;

	if (!find_symbol(elf, SYMBOL_PYPY, is_static, &symbol))
		return err_set(-ENOTSUP, "PyPy is not supported: it is no CPython");
	if (find_symbol(elf, SYMBOL_BEFORE_RUNTIME, is_static, runtime) < 0)
		return -ENOENT;
	b->is_from_memory = true;
	r = ask_version(from, elf, &b->version);
	if (!r)
		r = offsets_find(b->version, 0,
				 !find_symbol(elf, SYMBOL_TRACE_REFS, is_static, &symbol),
				 &b->offsets);
	if (!r && b->offsets.minor > 6)
		return err_set(-EBADMSG, "unknown build of CPython 3.%u: it has no " SYMBOL_RUNTIME,
			       b->offsets.minor);
	return r < 0 ? r : place_old_runtime(elf, is_static, b, runtime);
}

static int source_open(const struct file_source *from)
{
	return from->m ? proc_mapped_open(from->pid, from->m, NULL)
		       : file_open_regular(from->path, NULL);
}

int file_source_id(const struct file_source *from, struct file_id *id)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (from->m)
		return proc_mapped_id(from->pid, from->m, id);
	fd = file_open_regular(from->path, &st);
	if (fd < 0)
		return fd;
	*id = file_id_of(&st);
	return 0;
}

/*
 * Reads a file. Returns 0 and *out, NULL if it is no Python, or an error that is this process's and
 * not the file's, so that it must not be kept. Which part of the file the process has mapped
 * decides nothing else: others map it elsewhere.
 */
static int examine(const struct file_source *from, bool is_static, struct interpreter_file **out)
{
	_cleanup_(freep) struct interpreter_file *b = NULL;
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = -1;
	const Elf64_Phdr *text;
	struct elf_symbol symbol;
	int r;

	*out = NULL;
	fd = source_open(from);
	if (fd < 0)
		return fd;
	r = elf_open(fd, &elf);
	if (r == -ENOEXEC || r == -EBADMSG)
		return 0; /* mapped executable, but not by a dynamic linker */
	if (r < 0)
		return err_set(r, "%s: %s", from->m ? from->m->path : from->path, strerror(-r));
	text = elf_first_text(elf);
	if (!text)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;

	r = find_runtime_symbol(elf, is_static, &symbol);
	if (r < 0)
		r = identify_other(from, elf, is_static, b, &symbol);
	else
		r = identify(from, elf, &symbol, is_static, b);
	if (r == -ENOENT)
		return 0;
	b->text_to_runtime = text->p_offset - text->p_vaddr + symbol.vaddr;
	/* What a process says wrongly must not refuse all others of the file. */
	if (r < 0 && (b->is_from_memory || (r != -ENOTSUP && r != -EBADMSG)))
		return r;
	b->error = r;
	if (r < 0)
		snprintf(b->message, sizeof(b->message), "%s", err_message(r));
	elf_build_text(elf, b->build);
	b->text_offset = text->p_offset;
	b->text_last = text->p_offset + text->p_filesz;
	*out = take_ptr(b);
	return 0;
}

static int read_c_library(const struct file_source *from, bool is_program, struct c_library *out)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = source_open(from);
	int r = fd < 0 ? fd : elf_open(fd, &elf);

	if (r < 0)
		return r == -ENOEXEC ? -ENOENT : r;
	return c_library_read(elf, from->m ? from->m->path : from->path, is_program, out);
}

#define COSTLY_NS 50000000ULL /* of CPU time: a file that takes more is not searched to the end */

/*
 * As examine(), within the allowance of CPU time. What was not searched to the end is not known,
 * -ETIME, but for a file that is costly by itself: that is none of Python.
 */
static int examine_in_time(const struct file_source *from, bool is_static,
			   struct interpreter_file **out)
{
	uint64_t before_ns = allowance_used_ns();
	int r = examine(from, is_static, out);

	if (!allowance_is_spent())
		return r;
	if (r >= 0)
		free(*out);
	*out = NULL;
	if (allowance_used_ns() - before_ns < COSTLY_NS)
		return err_set(-ETIME, "there is more to look at than its share of time is for");
	err_clear();
	log_note("%s: too large to be searched for Python; -p PID searches it",
		 from->m ? from->m->path : from->path);
	return 0;
}

/* A new search that failed leaves the cache alone. */
int interpreter_file_find(struct runtime_cache *cache, const struct file_source *from,
			  bool is_static, const struct interpreter_file **out)
{
	struct known_file *file;
	struct interpreter_file *b;
	struct file_id id;
	int r;

	r = file_source_id(from, &id);
	if (r < 0)
		return r;
	file = cache_slot(cache, &id);
	if (!file->is_used || (is_static && !file->binary && !file->is_searched)) {
		cache->misses++;
		r = examine_in_time(from, is_static, &b);
		if (r < 0)
			return r;
		if (!file->is_used && cache->len == RUNTIME_CACHE_FILES) {
			forget_all(cache);
			file = cache_slot(cache, &id);
		}
		cache->len += !file->is_used;
		file->is_used = true;
		file->is_searched = is_static;
		file->binary = b;
	}
	*out = file->binary;
	return 0;
}

int interpreter_file_c_library(struct runtime_cache *cache, const struct file_source *from,
			       bool is_program, struct c_library *out)
{
	const struct interpreter_file *b;
	struct known_file *file;
	struct file_id id;
	int r;

	r = interpreter_file_find(cache, from, false, &b);
	if (r >= 0)
		r = file_source_id(from, &id);
	if (r < 0)
		return r;
	file = cache_slot(cache, &id);
	if (!file->is_c_library_asked) {
		r = read_c_library(from, is_program, &file->c_library);
		if (allowance_is_spent())
			return err_set(-ETIME, "its share of time is spent");
		if (r < 0 && r != -ENOENT && r != -EBADMSG)
			return r;
		file->is_c_library_asked = true;
		file->c_library_error = (int8_t)r;
	}
	*out = file->c_library;
	return file->c_library_error;
}
