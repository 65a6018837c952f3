/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_ELF_H
#define TARGET_ELF_H

/*
 * 64-bit little-endian ELF files, read by bounded pread() only: nothing is
 * mapped, and no more is read than a question needs (a symbol: about ten reads of a few bytes, by
 * the hash table of the dynamic linker). Every number of a file is checked before use.
 */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "target/maps.h"

#define ELF_SEGMENTS_MAX 256
#define ELF_SECTIONS_MAX 4096
#define ELF_NEEDED_MAX 32 /* libraries of one file that are looked at */
#define ELF_BUILD_ID_MAX 64
#define ELF_TABLE_MAX (64u << 20) /* bytes of .symtab or .strtab that are searched */

/* Addresses from PT_DYNAMIC. symbols is 0 if the file has no symbols with a hash table. */
struct elf_dynamic {
	uint64_t symbols;
	uint64_t strings;
	uint64_t strings_len;
	uint64_t gnu_hash;           /* 0: none */
	uint64_t sysv_hash;          /* 0: none */
	uint64_t calls, calls_bytes; /* relocations of the slots by which libraries are called */
	uint64_t relocations, relocations_bytes; /* all others */
	uint32_t needed[ELF_NEEDED_MAX];         /* names of libraries, in the strings */
	uint32_t needed_len;
};

struct elf {
	int fd; /* borrowed */
	uint64_t size;
	Elf64_Ehdr head;
	Elf64_Phdr *segments;
	size_t segments_len;
	struct elf_dynamic dynamic;
};

struct elf_symbol {
	uint64_t vaddr; /* as linked: add the load bias */
	uint64_t size;  /* 0: not said */
};

struct elf_section {
	uint64_t vaddr;  /* 0: not loaded */
	uint64_t offset; /* of its bytes in the file */
	uint64_t size;
};

/*
 * Of this machine's kind. -ENOEXEC for what is no such file, -EBADMSG for one that is damaged; both
 * without a message, as most files that processes map are of no interest. fd stays the caller's,
 * and must stay open.
 */
int elf_open(int fd, struct elf **out);

/* The same of any machine's. */
int elf_open_any(int fd, struct elf **out);

void elf_free(struct elf *elf);
DEFINE_CLEANUP(struct elf *, elf_free)

/*
 * The executable segment that a mapping at this offset of the file belongs to, NULL if none. For
 * each process that maps it: address = mapping's start - its offset + p_offset - p_vaddr + vaddr.
 */
const Elf64_Phdr *elf_text_segment(const struct elf *elf, uint64_t mapped_offset);

/* The offset at which the kernel maps what begins there: that of its page. */
uint64_t elf_mapped_offset(uint64_t offset);

/* The lowest executable segment, where a process of the program has mm_struct.start_code. */
const Elf64_Phdr *elf_first_text(const struct elf *elf);

/*
 * What to add to an address of the file to have one of the process: from an executable mapping of
 * the file. -ENOENT if no executable segment is there.
 */
int elf_load_bias(const struct elf *elf, const struct mapping *m, uint64_t *bias);

/*
 * A defined symbol of the dynamic symbol table, found by DT_GNU_HASH or DT_HASH, so in files
 * without section headers too. -ENOENT: not there.
 */
int elf_dynamic_symbol(const struct elf *elf, const char *name, struct elf_symbol *out);

/*
 * A defined symbol of .symtab, local ones included; the first of several. -ENOENT: not there, or
 * stripped, -EFBIG: a table beyond ELF_TABLE_MAX. Reads both tables: some milliseconds a 10 MiB.
 */
int elf_static_symbol(const struct elf *elf, const char *name, struct elf_symbol *out);

/* A section by its name. -ENOENT: not there, or no section headers. */
int elf_section(const struct elf *elf, const char *name, struct elf_section *out);

/*
 * Bytes that the file has for an address, all of them: -ENOENT where it has none (.bss is not in
 * the file, nor what a relocation adds).
 */
int elf_read(const struct elf *elf, uint64_t vaddr, void *buf, size_t len);

/* The first library it needs whose name begins so. -ENOENT: none, or a name too long for out. */
int elf_needed(const struct elf *elf, const char *prefix, char *out, size_t size);

/* Where the file has its pointer to a library's function of this name. -ENOENT: nowhere. */
int elf_slot(const struct elf *elf, const char *name, uint64_t *vaddr);

/*
 * The first relocation of a symbol that is of one of these types (0 last), and where it applies.
 * -ENOENT: there is none.
 */
int elf_relocation(const struct elf *elf, const char *name, const uint32_t *types, uint32_t *type,
		   uint64_t *vaddr);

/* NT_GNU_BUILD_ID. Returns its length, up to ELF_BUILD_ID_MAX, or -ENOENT. */
int elf_build_id(const struct elf *elf, uint8_t id[ELF_BUILD_ID_MAX]);

/* The same as hexadecimal text; "" if the file has none. */
#define ELF_BUILD_TEXT_BYTES (2 * ELF_BUILD_ID_MAX + 1)
void elf_build_text(const struct elf *elf, char text[ELF_BUILD_TEXT_BYTES]);

#endif
