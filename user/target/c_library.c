/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/c_library.h"

#include <errno.h>
#include <string.h>

/* Of a field: its bits, how many there are, and where. */
#define SYMBOL_TID "_thread_db_pthread_tid"
#define TID_BITS 32

/* struct pthread of musl 1.2 (src/internal/pthread_impl.h). */
static const struct c_library musl_x86_64 = { .tid_at = 48 };
static const struct c_library musl_arm64 = { .pthread_bytes = 200, .tid_at = 32 };

static bool begins_with(const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, prefix, strlen(prefix));
}

bool c_library_is_musl(const char *path)
{
	return begins_with(path, "ld-musl-") || begins_with(path, "libc.musl-");
}

static bool is_linked_statically(const struct elf *elf)
{
	for (size_t i = 0; i < elf->segments_len; i++)
		if (elf->segments[i].p_type == PT_INTERP)
			return false;
	return !elf->dynamic.needed_len;
}

/* Words of glibc's, which are exported from 2.34 on, and before in libpthread's .symtab. */
static int read_words(const struct elf *elf, const char *name, bool is_static, uint32_t *words,
		      size_t bytes)
{
	struct elf_symbol symbol;
	int r = elf_dynamic_symbol(elf, name, &symbol);

	if (r < 0 && is_static)
		r = elf_static_symbol(elf, name, &symbol);
	return r < 0 ? r : elf_read(elf, symbol.vaddr, words, bytes);
}

int c_library_read(const struct elf *elf, const char *path, bool is_program, struct c_library *out)
{
	const bool is_x86 = elf->head.e_machine == EM_X86_64;
	const bool is_static = is_program && is_linked_statically(elf);
	const bool has_locals = is_static || begins_with(path, "libpthread");
	struct c_library found = { 0 };
	uint32_t size, tid[3];

	if (c_library_is_musl(path)) {
		*out = is_x86 ? musl_x86_64 : musl_arm64;
		return 0;
	}
	if (read_words(elf, C_LIBRARY_SYMBOL, has_locals, &size, sizeof(size)) < 0) {
		if (is_static) /* musl's: glibc's has the symbol, unless it was stripped */
			*out = is_x86 ? musl_x86_64 : musl_arm64;
		return is_static ? 0 : -ENOENT;
	}
	if (!size || size > PTHREAD_BYTES_MAX || size % 8)
		return -EBADMSG;
	if (!read_words(elf, SYMBOL_TID, has_locals, tid, sizeof(tid)) && tid[0] == TID_BITS &&
	    tid[2] <= size - TID_BITS / 8 && tid[2] % (TID_BITS / 8) == 0)
		found.tid_at = (uint16_t)tid[2];
	found.pthread_bytes = is_x86 ? 0 : (uint16_t)size;
	*out = found;
	return 0;
}
