/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/runtime.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "target/debug_offsets.h"
#include "target/elf.h"
#include "target/maps.h"
#include "target/mem.h"
#include "target/offsets.h"
#include "target/proc.h"

#define SCAN_MAX (16u << 20) /* bytes of .bss that are searched in all; 3.6 to 3.10 have 0.2 MB */
#define SCAN_BLOCK 65536
#define MESSAGE_BYTES 192
#define OLD_RUNTIME_BYTES 256 /* between 3.6's two variables; 16 in the builds seen */

/* Where a file is read from. */
struct source {
	const char *path; /* if no process maps it */
	pid_t pid;
	const struct mapping *m; /* of pid; NULL: none */
};

/* What the file says. */
struct binary {
	uint64_t text_offset; /* of the executable segment */
	uint64_t text_last;   /* an offset behind all that its executable mappings can have */
	int64_t text_to_runtime;
	uint32_t version;
	uint8_t head[DEBUG_OFFSETS_HEAD]; /* of its _Py_DebugOffsets; zeros before 3.13 */
	bool is_from_memory;              /* the version is what a process says, not the file */
	int error;                        /* 0, or why it cannot be used */
	char message[MESSAGE_BYTES];
	struct py_offsets offsets;
};

struct known_file {
	struct file_id id;
	bool is_used;
	bool is_searched;      /* .symtab too, not only the dynamic symbols */
	struct binary *binary; /* NULL: no Python */
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

/* --- Version -----------------------------------------------------------------------------------
 */

/*
 * "3.8.18 (", "3.9.0rc1+ (" at p, of len bytes: the start of sys.version. Returns its
 * PY_VERSION_HEX, 0 if it is something else.
 */
static uint32_t version_of_text(const char *p, size_t len)
{
	static const char levels[] = "abc";
	uint32_t numbers[3] = { 0 }, level = VERSION_LEVEL_FINAL, serial = 0;
	const char *end = p + len;

	for (int i = 0; i < 3; i++) {
		const char *first = p;

		for (; p < end && *p >= '0' && *p <= '9' && p - first < 3; p++)
			numbers[i] = numbers[i] * 10 + (*p - '0');
		if (p == first || numbers[i] > 255 || (i < 2 && (p == end || *p++ != '.')))
			return 0;
	}
	if (end - p > 1 && *p == 'r')
		p++;
	if (p < end && strchr(levels, *p) && *p) {
		level = 0xa + (strchr(levels, *p++) - levels);
		for (; p < end && *p >= '0' && *p <= '9' && serial < 16; p++)
			serial = serial * 10 + (*p - '0');
	}
	if (p < end && *p == '+')
		p++;
	if (end - p < 2 || p[0] != ' ' || p[1] != '(' || numbers[0] < 2 || numbers[0] > 3)
		return 0;
	return VERSION_HEX(numbers[0], numbers[1], numbers[2], level) | (serial & 0xf);
}

/*
 * Looks for the text behind Py_GetVersion() in a process. Up to 3.10 no constant holds the version;
 * this static array, an early sys.version, does from the time the interpreter starts.
 *
 * Returns 0 and *version, -EAGAIN if it is not there (yet), -EBADMSG for two different ones.
 */
static int scan_version(pid_t pid, const struct elf *elf, uint64_t bias, uint32_t *version)
{
	const size_t longest = 32; /* all of it that matters */
	_cleanup_(freep) char *block = malloc(SCAN_BLOCK + longest);
	uint32_t found = 0;
	uint64_t left = SCAN_MAX;

	if (!block)
		return -ENOMEM;
	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];
		uint64_t at = (s->p_vaddr + s->p_filesz + 7) & -8ull, end = s->p_vaddr + s->p_memsz;

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_W) || end < at)
			continue;
		if (end - at > left)
			end = at + left;
		left -= end - at;
		for (; at < end; at += SCAN_BLOCK) {
			size_t n =
				end - at < SCAN_BLOCK + longest ? end - at : SCAN_BLOCK + longest;
			int r = mem_read(pid, bias + at, block, n);

			if (r == -EFAULT) {
				err_clear(); /* not mapped: another segment then */
				break;
			}
			if (r < 0)
				return r;
			for (size_t p = 0; p < n && p < SCAN_BLOCK; p += 8) {
				uint32_t v = block[p] == '3' || block[p] == '2'
						     ? version_of_text(block + p, n - p)
						     : 0;
				char a[VERSION_TEXT_BYTES], b[VERSION_TEXT_BYTES];

				if (!v || v == found)
					continue;
				version_format(v, a);
				version_format(found, b);
				if (found)
					return err_set(-EBADMSG,
						       "unknown build of Python: its memory says "
						       "both %s and %s",
						       b, a);
				found = v;
			}
		}
	}
	if (!found)
		return err_set(-EAGAIN, "this Python has not said its version yet");
	*version = found;
	return 0;
}

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
static int ask_version(const struct source *from, const struct elf *elf, uint32_t *version)
{
	uint64_t bias;
	int r;

	if (!from->m)
		return -EAGAIN;
	r = elf_load_bias(elf, from->m, &bias);
	return r < 0 ? r : scan_version(from->pid, elf, bias, version);
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

/* --- One file ----------------------------------------------------------------------------------
 */

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

static int disagree(uint32_t a, const char *a_source, uint32_t b, const char *b_source)
{
	char a_text[VERSION_TEXT_BYTES], b_text[VERSION_TEXT_BYTES];

	version_format(a, a_text);
	version_format(b, b_text);
	return err_set(-EBADMSG, "unknown build of CPython: %s says %s, %s says %s", a_source,
		       a_text, b_source, b_text);
}

/* Fills in version, head and offsets of a file with _PyRuntime. */
static int identify(const struct source *from, const struct elf *elf,
		    const struct elf_symbol *runtime, bool is_static, struct binary *b)
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
			return disagree(b->version, "_Py_DebugOffsets", constant, SYMBOL_VERSION);
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

/*
 * Where 3.6's interp_head is, a static variable, which a stripped file does not name: exported
 * PyInterpreterState_Head() does nothing but return it.
 */
static int find_interp_head(const struct elf *elf, bool is_static, uint64_t *vaddr)
{
#ifdef __x86_64__
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t frame[] = { 0x55, 0x48, 0x89, 0xe5 }; /* push rbp; mov rbp, rsp */
	static const uint8_t load[] = { 0x48, 0x8b, 0x05 };        /* mov rax, [rip + disp32] */
	uint8_t code[sizeof(endbr64) + sizeof(frame) + sizeof(load) + sizeof(int32_t)];
	size_t at = 0;
#endif
	struct elf_symbol symbol;
	int r;

	r = elf_static_symbol(elf, SYMBOL_INTERP_HEAD, &symbol);
	if (!r) {
		*vaddr = symbol.vaddr;
		return 0;
	}
#ifdef __x86_64__
	if (!find_symbol(elf, SYMBOL_INTERP_HEAD_GETTER, is_static, &symbol) &&
	    !elf_read(elf, symbol.vaddr, code, sizeof(code))) {
		int32_t distance;

		if (!memcmp(code + at, endbr64, sizeof(endbr64)))
			at += sizeof(endbr64);
		if (!memcmp(code + at, frame, sizeof(frame)))
			at += sizeof(frame);
		if (!memcmp(code + at, load, sizeof(load))) {
			memcpy(&distance, code + at + sizeof(load), sizeof(distance));
			*vaddr = symbol.vaddr + at + sizeof(load) + sizeof(distance) + distance;
			return 0;
		}
	}
#endif
	return err_set(-EBADMSG, "CPython 3.6 whose list of interpreters cannot be found: stripped "
				 "of " SYMBOL_INTERP_HEAD);
}

/*
 * 3.6 has two variables for what _PyRuntime holds later: where both are, seen from the first, takes
 * its place. They are defined next to each other (Python/pystate.c).
 */
static int place_old_runtime(const struct elf *elf, bool is_static, struct binary *b,
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
static int identify_other(const struct source *from, const struct elf *elf, bool is_static,
			  struct binary *b, struct elf_symbol *runtime)
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

static int source_open(const struct source *from)
{
	return from->m ? proc_mapped_open(from->pid, from->m, NULL)
		       : file_open_regular(from->path, NULL);
}

static int source_id(const struct source *from, struct file_id *id)
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
 * not the file's, so that it must not be kept.
 */
static int examine(const struct source *from, bool is_static, struct binary **out)
{
	_cleanup_(freep) struct binary *b = NULL;
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = -1;
	const Elf64_Phdr *text;
	struct elf_symbol symbol;
	int r;

	fd = source_open(from);
	if (fd < 0)
		return fd;
	*out = NULL;
	r = elf_open(fd, &elf);
	if (r == -ENOEXEC || r == -EBADMSG)
		return 0; /* mapped executable, but not by a dynamic linker */
	if (r < 0)
		return err_set(r, "%s: %s", from->m ? from->m->path : from->path, strerror(-r));
	text = from->m ? elf_text_segment(elf, from->m->offset) : elf_first_text(elf);
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
	b->text_offset = text->p_offset;
	b->text_last = text->p_offset + text->p_filesz;
	*out = take_ptr(b);
	return 0;
}

/* The same, from the cache where it has it. A new search that failed leaves the cache alone. */
static int look_up(struct runtime_cache *cache, const struct source *from, bool is_static,
		   const struct binary **out)
{
	struct known_file *file;
	struct binary *b;
	struct file_id id;
	int r;

	r = source_id(from, &id);
	if (r < 0)
		return r;
	file = cache_slot(cache, &id);
	if (!file->is_used || (is_static && !file->binary && !file->is_searched)) {
		cache->misses++;
		r = examine(from, is_static, &b);
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

/* --- One process -------------------------------------------------------------------------------
 */

/* What was seen while looking at one process. */
struct search {
	struct runtime_cache *cache;
	pid_t pid;
	bool is_static; /* search .symtab too */
	bool is_found;  /* *out is filled in, but its interpreter not yet initialised */
	int error;      /* of the first Python that cannot be used */
	int unread;     /* of the last file that could not be opened */
	char message[MESSAGE_BYTES * 2];
};

/* Is memory what the file says? Then returns 1 if it has an interpreter, 0 if not yet. */
static int verify(pid_t pid, const struct binary *b, const struct py_runtime *found)
{
	static const uint8_t none[DEBUG_OFFSETS_HEAD];
	uint8_t bytes[DEBUG_OFFSETS_BYTES + 256];
	size_t len = b->offsets.runtime_interpreters_head + 8u;
	uint32_t version = 0;
	uint64_t head;
	int r;

	if (len > sizeof(bytes))
		return err_set(-EBADMSG, "%s: _PyRuntime is too large", found->path);
	r = mem_read(pid, found->runtime_addr, bytes, len);
	if (r < 0)
		return r;
	if (memcmp(b->head, none, sizeof(none)) && memcmp(b->head, bytes, sizeof(b->head))) {
		debug_offsets_version(bytes, len, &version);
		return disagree(b->version, "the file", version, "memory");
	}
	memcpy(&head, bytes + b->offsets.runtime_interpreters_head, sizeof(head));
	return head != 0;
}

static void keep_error(struct search *s, const struct mapping *m, int r)
{
	if (s->error)
		return;
	s->error = r;
	snprintf(s->message, sizeof(s->message), "%.160s: %s", m->path, err_message(r));
}

/* Returns 1 when the search is over. Errors of single files are kept for the end. */
static int look_at(struct search *s, const struct mapping *m, struct py_runtime *out)
{
	const struct source from = { .pid = s->pid, .m = m };
	const struct binary *b;
	struct py_runtime found;
	int r;

	r = look_up(s->cache, &from, s->is_static, &b);
	if (r == -ESRCH || r == -ENOMEM)
		return r;
	if (r == -EAGAIN || r == -EBADMSG || r == -ENOTSUP) {
		keep_error(s, m, r);
		return 0;
	}
	if (r < 0) {
		s->unread = r;
		return 0;
	}
	if (!b || m->offset < (b->text_offset & ~4095ull) || m->offset >= b->text_last)
		return 0;
	if (b->error) {
		err_set(b->error, "%s", b->message);
		keep_error(s, m, b->error);
		return 0;
	}
	found = (struct py_runtime){
		.version = b->version,
		.runtime_addr = m->start - m->offset + b->text_to_runtime,
		.text_start = m->start,
		.text_pgoff = m->offset,
		.text_inode = m->inode,
		.text_dev = (uint64_t)m->dev_major << 20 | m->dev_minor,
		.text_to_runtime = b->text_to_runtime,
		.offsets = b->offsets,
	};
	snprintf(found.path, sizeof(found.path), "%s", m->path);
	found.seen_ns = monotonic_ns();
	r = verify(s->pid, b, &found);
	if (r == -EPERM || r == -ESRCH)
		return r;
	if (r < 0) {
		keep_error(s, m, r);
		return 0;
	}
	found.is_initialised = r > 0;
	if (r || !s->is_found)
		*out = found;
	s->is_found = true;
	return r;
}

/* All executable mappings of files. Returns 1 when the search is over, 0 to go on otherwise. */
static int look_at_all(struct search *s, struct py_runtime *out)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int r;

	r = maps_open(s->pid, &maps);
	if (r == -ENOENT || r == -ESRCH)
		return err_set(-ESRCH, "no process with pid %d", s->pid);
	if (r == -EACCES || r == -EPERM)
		return err_set(-EPERM,
			       "no permission to see its mappings (needs root or CAP_SYS_PTRACE; "
			       "who has it is held back by a security module or a sandbox)");
	if (r < 0)
		return r;
	while ((r = maps_next(maps, &m)) > 0) {
		if (!m.inode || !(m.perms & PROT_EXEC))
			continue;
		r = look_at(s, &m, out);
		if (r)
			return r;
	}
	return r;
}

static int nothing_found(const struct search *s)
{
	_cleanup_(freep) char *exe = NULL;
	struct proc_stat stat;

	if (s->error)
		return err_set(s->error, "%s", s->message);
	if (s->unread == -EPERM || s->unread == -EACCES)
		return err_set(-EPERM,
			       "no permission to read the files that pid %d maps (needs root, or "
			       "CAP_DAC_READ_SEARCH, and CAP_CHECKPOINT_RESTORE for deleted ones)",
			       s->pid);
	if (proc_exe(s->pid, &exe) < 0 && proc_stat(s->pid, &stat) == 0 && stat.is_kernel_thread)
		return err_set(-ENOENT, "no Python runtime in this process (a kernel thread)");
	if (!exe)
		return err_set(-ESRCH, "no process with pid %d: it has just ended", s->pid);
	return err_set(-ENOENT, "no Python runtime in this process (mappings: %s)%s", exe,
		       s->unread ? "; a mapped file could not be opened" : "");
}

int runtime_find(struct runtime_cache *cache, pid_t pid, struct py_runtime *out)
{
	struct search s = { .cache = cache, .pid = pid };
	struct py_runtime found;
	int r;

	r = look_at_all(&s, &found);
	if (!r && !s.is_found && !s.error) {
		s.is_static = true;
		r = look_at_all(&s, &found);
	}
	if (r < 0)
		return r;
	if (!r && !s.is_found)
		return nothing_found(&s);
	*out = found;
	return 0;
}

int runtime_read_file(struct runtime_cache *cache, const char *path, struct py_runtime *out)
{
	const struct source from = { .path = path };
	const struct binary *b;
	struct file_id id;
	int r = source_id(&from, &id);

	if (!r)
		r = look_up(cache, &from, false, &b);
	if (r < 0)
		return r == -EAGAIN ? -ENOENT : r;
	if (!b || b->error)
		return -ENOENT;
	*out = (struct py_runtime){
		.version = b->version,
		.text_pgoff = b->text_offset,
		.text_inode = id.inode,
		.text_dev = kernel_dev(id.dev),
		.text_to_runtime = b->text_to_runtime,
		.offsets = b->offsets,
	};
	snprintf(out->path, sizeof(out->path), "%s", path);
	return 0;
}
