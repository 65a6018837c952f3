/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/thread_context.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "target/c_library.h"
#include "target/elf.h"
#include "target/maps.h"
#include "target/mem.h"
#include "target/proc.h"

#define VARIABLE "otel_thread_ctx_v1"
#define MODULES_MAX 65536

#ifdef __x86_64__
/* The psABI's relocations, by which a file asks where a thread-local variable is. */
static const uint32_t relocations[] = { R_X86_64_TLSDESC, R_X86_64_DTPMOD64, R_X86_64_TPOFF64, 0 };

/* tcbhead_t.dtv of glibc, struct pthread.dtv of musl; an entry of glibc has a second word. */
#define TABLE_AT 8
#define TABLE_STEP_GLIBC 16
#define TABLE_STEP_MUSL 8

/* In the static block, of the program itself: what the linker knew, and left no relocation of. */
static int find_in_program(const struct elf *elf, uint64_t value, struct thread_context_row *out)
{
	if (elf->head.e_type != ET_EXEC && elf->head.e_type != ET_DYN)
		return -EBADMSG;
	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];
		uint64_t align = s->p_align ? s->p_align : 1;

		if (s->p_type != PT_TLS)
			continue;
		if (align & (align - 1) || s->p_memsz > THREAD_CONTEXT_STATIC_MAX ||
		    align > THREAD_CONTEXT_STATIC_MAX || value >= s->p_memsz)
			return -EBADMSG;
		*out = (struct thread_context_row){
			.offset = (int64_t)value - (int64_t)((s->p_memsz + align - 1) & -align)
		};
		return 0;
	}
	return -EBADMSG;
}

static int place_in_module(uint64_t module, uint64_t offset, bool is_musl,
			   struct thread_context_row *out)
{
	if (!module)
		return -ENOENT; /* not yet */
	if (module > MODULES_MAX || offset > THREAD_CONTEXT_STATIC_MAX)
		return -EBADMSG;
	*out = (struct thread_context_row){ .module = (uint32_t)module,
					    .offset = (int64_t)offset,
					    .table_at = TABLE_AT,
					    .table_step =
						    is_musl ? TABLE_STEP_MUSL : TABLE_STEP_GLIBC };
	return 0;
}

static bool is_static(uint64_t offset)
{
	int64_t from_end = (int64_t)offset;

	return from_end < 0 && from_end > -THREAD_CONTEXT_STATIC_MAX;
}

/* What the dynamic linker has made of a relocation: words[] are where it points to. */
static int read_relocation(pid_t pid, uint32_t type, const uint64_t words[2], bool is_musl,
			   struct thread_context_row *out)
{
	uint64_t index[2];

	if (type == R_X86_64_DTPMOD64)
		return place_in_module(words[0], words[1], is_musl, out);
	if (type == R_X86_64_TLSDESC && !is_static(words[1])) {
		if (mem_read(pid, words[1], index, sizeof(index)) < 0) {
			err_clear();
			return -ENOENT;
		}
		return place_in_module(index[0], index[1], is_musl, out);
	}
	*out = (struct thread_context_row){
		.offset = (int64_t)(type == R_X86_64_TLSDESC ? words[1] : words[0])
	};
	return is_static((uint64_t)out->offset) ? 0 : -ENOENT;
}

/* A file that is mapped: -ENOENT: it does not define the variable. */
static int find_in_file(pid_t pid, const struct mapping *m, bool is_musl,
			struct thread_context_row *out)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = proc_mapped_open(pid, m, NULL);
	struct elf_symbol symbol;
	uint64_t bias, at, words[2];
	uint32_t type;
	int r;

	if (fd < 0 || elf_open(fd, &elf) < 0 || elf_dynamic_symbol(elf, VARIABLE, &symbol) < 0 ||
	    elf_load_bias(elf, m, &bias) < 0) {
		err_clear();
		return -ENOENT;
	}
	r = elf_relocation(elf, VARIABLE, relocations, &type, &at);
	if (r == -ENOENT)
		return find_in_program(elf, symbol.vaddr, out);
	if (r < 0)
		return r;
	r = mem_read(pid, bias + at, words,
		     type == R_X86_64_TPOFF64 ? sizeof(words[0]) : sizeof(words));
	if (r < 0) {
		err_clear();
		return -ENOENT;
	}
	return read_relocation(pid, type, words, is_musl, out);
}

static int has_musl(pid_t pid)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int r = maps_open(pid, &maps);

	while (r >= 0 && (r = maps_next(maps, &m)) > 0)
		if (c_library_is_musl(m.path))
			return 1;
	return r;
}

int thread_context_find(pid_t pid, struct thread_context_row *out)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	int is_musl = has_musl(pid), r, found = -ENOENT;
	struct mapping m;

	if (is_musl < 0)
		return is_musl;
	r = maps_open(pid, &maps);
	while (found == -ENOENT && r >= 0 && (r = maps_next(maps, &m)) > 0)
		if (m.inode && m.perms & PROT_EXEC)
			found = find_in_file(pid, &m, is_musl, out);
	return r < 0 ? r : found;
}
#else
int thread_context_find(pid_t pid, struct thread_context_row *out)
{
	(void)pid, (void)out;
	return -ENOTSUP;
}
#endif
