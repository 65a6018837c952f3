/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/elf.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/allowance.h"
#include "base/file.h"

#define NAME_MAX_ 256    /* of a symbol or section that is asked for */
#define DYNAMIC_MAX 4096 /* entries of PT_DYNAMIC */
#define CHAIN_MAX 65536  /* symbols looked at in one hash chain */
#define RELOCATIONS_MAX 65536
#define TABLE_MAX (4u << 20) /* relocations of one that is read by blocks */
#define RELOCATIONS_BLOCK 512
#define CANDIDATES_MAX 64 /* places in a string table where a name ends */
#define NOTES_MAX 65536   /* bytes of one note segment */
#define SECTION_NAMES_MAX (1u << 20)
#define BLOCK 65536

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

/* Exactly len bytes of the file, or -EBADMSG; -ETIME: the allowance of CPU time is spent. */
static int read_at(const struct elf *elf, uint64_t offset, void *buf, size_t len)
{
	ssize_t n;

	if (offset > elf->size || len > elf->size - offset)
		return -EBADMSG;
	if (!allowance_take(len))
		return -ETIME;
	n = file_pread(elf->fd, buf, len, offset);
	if (n < 0)
		return n;
	return (size_t)n == len ? 0 : -EBADMSG;
}

static int read_dynamic(const struct elf *elf, struct elf_dynamic *out)
{
	struct elf_dynamic d = { 0 };

	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];
		Elf64_Dyn block[64];
		uint64_t count = s->p_filesz / sizeof(*block);

		if (s->p_type != PT_DYNAMIC)
			continue;
		if (count > DYNAMIC_MAX)
			return -EBADMSG;
		for (uint64_t at = 0; at < count; at++) {
			uint64_t value, in_block = at % 64;

			if (!in_block) {
				size_t n = count - at < 64 ? count - at : 64;
				int r = read_at(elf, s->p_offset + at * sizeof(*block), block,
						n * sizeof(*block));

				if (r < 0)
					return r;
			}
			value = block[in_block].d_un.d_val;
			switch (block[in_block].d_tag) {
			case DT_NULL:
				at = count - 1;
				break;
			case DT_SYMTAB:
				d.symbols = value;
				break;
			case DT_STRTAB:
				d.strings = value;
				break;
			case DT_STRSZ:
				d.strings_len = value;
				break;
			case DT_GNU_HASH:
				d.gnu_hash = value;
				break;
			case DT_HASH:
				d.sysv_hash = value;
				break;
			case DT_JMPREL:
				d.calls = value;
				break;
			case DT_PLTRELSZ:
				d.calls_bytes = value;
				break;
			case DT_RELA:
				d.relocations = value;
				break;
			case DT_RELASZ:
				d.relocations_bytes = value;
				break;
			case DT_NEEDED:
				if (d.needed_len < ELF_NEEDED_MAX && value <= UINT32_MAX)
					d.needed[d.needed_len++] = value;
				break;
			}
		}
		break;
	}
	if (d.strings && (d.gnu_hash || d.sysv_hash))
		*out = d;
	return 0;
}

int elf_open_any(int fd, struct elf **out)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	elf = calloc(1, sizeof(*elf));
	if (!elf)
		return -ENOMEM;
	elf->fd = fd;
	elf->size = st.st_size;
	r = read_at(elf, 0, &elf->head, sizeof(elf->head));
	if (r < 0)
		return r == -EBADMSG ? -ENOEXEC : r;
	if (memcmp(elf->head.e_ident, ELFMAG, SELFMAG) ||
	    elf->head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf->head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (elf->head.e_type != ET_EXEC && elf->head.e_type != ET_DYN))
		return -ENOEXEC;
	if (elf->head.e_phentsize != sizeof(Elf64_Phdr) || !elf->head.e_phnum ||
	    elf->head.e_phnum > ELF_SEGMENTS_MAX)
		return -EBADMSG;
	elf->segments_len = elf->head.e_phnum;
	elf->segments = calloc(elf->segments_len, sizeof(*elf->segments));
	if (!elf->segments)
		return -ENOMEM;
	r = read_at(elf, elf->head.e_phoff, elf->segments,
		    elf->segments_len * sizeof(*elf->segments));
	if (!r)
		r = read_dynamic(elf, &elf->dynamic);
	if (r < 0)
		return r;
	*out = take_ptr(elf);
	return 0;
}

int elf_open(int fd, struct elf **out)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	int r = elf_open_any(fd, &elf);

	if (r < 0)
		return r;
	if (elf->head.e_machine != MACHINE)
		return -ENOEXEC;
	*out = take_ptr(elf);
	return 0;
}

void elf_free(struct elf *elf)
{
	if (!elf)
		return;
	free(elf->segments);
	free(elf);
}

uint64_t elf_mapped_offset(uint64_t offset)
{
	return offset & -(uint64_t)sysconf(_SC_PAGESIZE);
}

const Elf64_Phdr *elf_text_segment(const struct elf *elf, uint64_t mapped_offset)
{
	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_LOAD && s->p_flags & PF_X &&
		    s->p_offset + s->p_filesz >= s->p_offset &&
		    mapped_offset >= elf_mapped_offset(s->p_offset) &&
		    mapped_offset < s->p_offset + s->p_filesz)
			return s;
	}
	return NULL;
}

const Elf64_Phdr *elf_first_text(const struct elf *elf)
{
	const Elf64_Phdr *first = NULL;

	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_LOAD && s->p_flags & PF_X &&
		    (!first || s->p_vaddr < first->p_vaddr))
			first = s;
	}
	return first;
}

int elf_load_bias(const struct elf *elf, const struct mapping *m, uint64_t *bias)
{
	const Elf64_Phdr *s = elf_text_segment(elf, m->offset);

	if (!s)
		return -ENOENT;
	*bias = m->start - m->offset + s->p_offset - s->p_vaddr;
	return 0;
}

int elf_read(const struct elf *elf, uint64_t vaddr, void *buf, size_t len)
{
	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_LOAD && vaddr >= s->p_vaddr &&
		    vaddr - s->p_vaddr < s->p_filesz && len <= s->p_filesz - (vaddr - s->p_vaddr))
			return read_at(elf, s->p_offset + (vaddr - s->p_vaddr), buf, len);
	}
	return -ENOENT;
}

/* --- The dynamic symbol table ------------------------------------------------------------------
 */

/* 1 and *out if symbol number `index` has this name, 0 if not. */
static int is_called(const struct elf *elf, const struct elf_dynamic *d, uint64_t index,
		     const char *name, Elf64_Sym *out)
{
	size_t len = strlen(name) + 1;
	char found[NAME_MAX_];
	int r;

	r = elf_read(elf, d->symbols + index * sizeof(*out), out, sizeof(*out));
	if (r < 0)
		return r;
	if (out->st_name >= d->strings_len || len > d->strings_len - out->st_name)
		return 0;
	r = elf_read(elf, d->strings + out->st_name, found, len);
	return r < 0 ? r : !memcmp(found, name, len);
}

/* The same of one that is defined. */
static int is_symbol(const struct elf *elf, const struct elf_dynamic *d, uint64_t index,
		     const char *name, struct elf_symbol *out)
{
	Elf64_Sym symbol;
	int r = is_called(elf, d, index, name, &symbol);

	if (r <= 0 || symbol.st_shndx == SHN_UNDEF)
		return r < 0 ? r : 0;
	*out = (struct elf_symbol){ symbol.st_value, symbol.st_size };
	return 1;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t h = 0;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		h ^= (h >> 24) & 0xf0;
		h &= 0x0fffffff;
	}
	return h;
}

/* https://sourceware.org/gnu-gabi/program-loading-and-dynamic-linking.txt, "DT_GNU_HASH" */
static int gnu_lookup(const struct elf *elf, const struct elf_dynamic *d, const char *name,
		      struct elf_symbol *out)
{
	struct {
		uint32_t buckets, first, words, shift;
	} head;
	uint32_t hash = gnu_hash(name), index, chain[64];
	uint64_t word, buckets, chains;
	int r;

	r = elf_read(elf, d->gnu_hash, &head, sizeof(head));
	if (r < 0)
		return r;
	if (!head.buckets || !head.words)
		return -ENOENT;
	r = elf_read(elf, d->gnu_hash + sizeof(head) + hash / 64 % head.words * 8ull, &word, 8);
	if (r < 0)
		return r;
	if (!(word >> hash % 64 & word >> (hash >> (head.shift & 31)) % 64 & 1))
		return -ENOENT;
	buckets = d->gnu_hash + sizeof(head) + head.words * 8ull;
	chains = buckets + head.buckets * 4ull;
	r = elf_read(elf, buckets + hash % head.buckets * 4ull, &index, 4);
	if (r < 0)
		return r;
	if (index < head.first)
		return -ENOENT;
	for (uint32_t seen = 0; seen < CHAIN_MAX; seen++, index++) {
		uint32_t in_block = seen % 64, value;

		/* The table ends somewhere in the last block. */
		if (!in_block) {
			uint64_t at = chains + (index - head.first) * 4ull;
			size_t n = 64;

			while (n && elf_read(elf, at, chain, n * 4) < 0)
				n /= 2;
			memset(chain + n, 0xff, sizeof(chain) - n * 4); /* ends the chain */
		}
		value = chain[in_block];
		if ((value | 1) == (hash | 1)) {
			r = is_symbol(elf, d, index, name, out);
			if (r)
				return r < 0 ? r : 0;
		}
		if (value & 1)
			return -ENOENT;
	}
	return -EBADMSG;
}

/* System V ABI, "Hash Table". */
static int sysv_lookup(const struct elf *elf, const struct elf_dynamic *d, const char *name,
		       struct elf_symbol *out)
{
	uint32_t head[2], index;
	int r;

	r = elf_read(elf, d->sysv_hash, head, sizeof(head));
	if (r < 0)
		return r;
	if (!head[0])
		return -ENOENT;
	r = elf_read(elf, d->sysv_hash + (2 + sysv_hash(name) % head[0]) * 4ull, &index, 4);
	for (uint32_t seen = 0; r >= 0 && index && seen < CHAIN_MAX; seen++) {
		if (index >= head[1])
			return -EBADMSG;
		r = is_symbol(elf, d, index, name, out);
		if (r)
			return r < 0 ? r : 0;
		r = elf_read(elf, d->sysv_hash + (2ull + head[0] + index) * 4, &index, 4);
	}
	return r < 0 ? r : -ENOENT;
}

int elf_dynamic_symbol(const struct elf *elf, const char *name, struct elf_symbol *out)
{
	const struct elf_dynamic *d = &elf->dynamic;

	assert(strlen(name) < NAME_MAX_);
	if (!d->symbols)
		return -ENOENT;
	return d->gnu_hash ? gnu_lookup(elf, d, name, out) : sysv_lookup(elf, d, name, out);
}

/* --- Sections ----------------------------------------------------------------------------------
 */

/* All section headers, to be freed with free(). */
static int read_sections(const struct elf *elf, Elf64_Shdr **out, size_t *count)
{
	_cleanup_(freep) Elf64_Shdr *heads = NULL;
	size_t bytes = elf->head.e_shnum * sizeof(*heads);
	int r;

	if (!elf->head.e_shnum || elf->head.e_shnum > ELF_SECTIONS_MAX ||
	    elf->head.e_shentsize != sizeof(*heads))
		return -ENOENT;
	heads = malloc(bytes);
	if (!heads)
		return -ENOMEM;
	r = read_at(elf, elf->head.e_shoff, heads, bytes);
	if (r < 0)
		return r;
	*out = take_ptr(heads);
	*count = elf->head.e_shnum;
	return 0;
}

static struct elf_section section_of(const Elf64_Shdr *head)
{
	return (struct elf_section){ .vaddr = head->sh_addr,
				     .offset = head->sh_offset,
				     .size = head->sh_size };
}

int elf_section(const struct elf *elf, const char *name, struct elf_section *out)
{
	_cleanup_(freep) Elf64_Shdr *heads = NULL;
	_cleanup_(freep) char *names = NULL;
	size_t len = strlen(name) + 1, names_len, count;
	int r;

	r = read_sections(elf, &heads, &count);
	if (r < 0)
		return r;
	if (elf->head.e_shstrndx >= count)
		return -ENOENT;
	names_len = heads[elf->head.e_shstrndx].sh_size;
	if (names_len > SECTION_NAMES_MAX)
		return -EBADMSG;
	names = malloc(names_len + 1);
	if (!names)
		return -ENOMEM;
	r = read_at(elf, heads[elf->head.e_shstrndx].sh_offset, names, names_len);
	if (r < 0)
		return r;
	for (size_t i = 1; i < count; i++) {
		if (heads[i].sh_name >= names_len || len > names_len - heads[i].sh_name ||
		    memcmp(names + heads[i].sh_name, name, len))
			continue;
		*out = section_of(&heads[i]);
		return 0;
	}
	return -ENOENT;
}

/* .symtab and its names. */
static int find_symtab(const struct elf *elf, struct elf_section *table,
		       struct elf_section *strings)
{
	_cleanup_(freep) Elf64_Shdr *heads = NULL;
	size_t count;
	int r = read_sections(elf, &heads, &count);

	for (size_t i = 1; r >= 0 && i < count; i++) {
		if (heads[i].sh_type != SHT_SYMTAB || heads[i].sh_link >= count)
			continue;
		*table = section_of(&heads[i]);
		*strings = section_of(&heads[heads[i].sh_link]);
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}

/*
 * Offsets in a string table where a name stands: linkers let it be the end of a longer one.
 * Returns their number, up to CANDIDATES_MAX.
 */
static int find_name(const struct elf *elf, const struct elf_section *strings, const char *name,
		     uint64_t offsets[CANDIDATES_MAX])
{
	_cleanup_(freep) char *block = malloc(BLOCK);
	size_t len = strlen(name) + 1;
	int count = 0;

	if (!block)
		return -ENOMEM;
	for (uint64_t at = 0; at + len <= strings->size; at += BLOCK - (len - 1)) {
		size_t n = strings->size - at < BLOCK ? strings->size - at : BLOCK;
		int r = read_at(elf, strings->offset + at, block, n);
		char *p = block;

		if (r < 0)
			return r;
		while ((p = memmem(p, block + n - p, name, len))) {
			if (count == CANDIDATES_MAX)
				return count;
			offsets[count++] = at + (p - block);
			p += len;
		}
	}
	return count;
}

int elf_static_symbol(const struct elf *elf, const char *name, struct elf_symbol *out)
{
	enum { SYMBOLS = BLOCK / sizeof(Elf64_Sym) };
	_cleanup_(freep) Elf64_Sym *block = NULL;
	uint64_t offsets[CANDIDATES_MAX], total;
	struct elf_section table, strings;
	int r, count;

	assert(strlen(name) < NAME_MAX_);
	r = find_symtab(elf, &table, &strings);
	if (r < 0)
		return r;
	if (table.size > ELF_TABLE_MAX || strings.size > ELF_TABLE_MAX)
		return -EFBIG;
	count = find_name(elf, &strings, name, offsets);
	if (count <= 0)
		return count < 0 ? count : -ENOENT;
	block = malloc(SYMBOLS * sizeof(*block));
	if (!block)
		return -ENOMEM;
	total = table.size / sizeof(*block);
	for (uint64_t at = 0; at < total; at += SYMBOLS) {
		size_t n = total - at < SYMBOLS ? total - at : SYMBOLS;

		r = read_at(elf, table.offset + at * sizeof(*block), block, n * sizeof(*block));
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			for (int j = 0; j < count; j++)
				if (block[i].st_name == offsets[j] &&
				    block[i].st_shndx != SHN_UNDEF) {
					*out = (struct elf_symbol){ block[i].st_value,
								    block[i].st_size };
					return 0;
				}
	}
	return -ENOENT;
}

/* --- Notes -------------------------------------------------------------------------------------
 */

/* One table of relocations, at vaddr, of size bytes. */
static int find_slot(const struct elf *elf, uint64_t table, uint64_t size, const char *name,
		     uint64_t *vaddr)
{
	uint64_t count = size / sizeof(Elf64_Rela);

	for (uint64_t i = 0; i < count && i < RELOCATIONS_MAX; i++) {
		Elf64_Rela rela;
		Elf64_Sym symbol;
		int r = elf_read(elf, table + i * sizeof(rela), &rela, sizeof(rela));

		if (r < 0)
			return r;
		if (!ELF64_R_SYM(rela.r_info))
			continue;
		r = is_called(elf, &elf->dynamic, ELF64_R_SYM(rela.r_info), name, &symbol);
		if (r < 0)
			return r;
		if (r) {
			*vaddr = rela.r_offset;
			return 0;
		}
	}
	return -ENOENT;
}

int elf_slot(const struct elf *elf, const char *name, uint64_t *vaddr)
{
	const struct elf_dynamic *d = &elf->dynamic;
	int r = find_slot(elf, d->calls, d->calls_bytes, name, vaddr);

	return r == -ENOENT ? find_slot(elf, d->relocations, d->relocations_bytes, name, vaddr) : r;
}

static bool is_one_of(uint32_t type, const uint32_t *types)
{
	while (*types && *types != type)
		types++;
	return *types;
}

/* The same of some types, which are few, so that tables of any length take little. */
static int find_relocation(const struct elf *elf, uint64_t table, uint64_t size, const char *name,
			   const uint32_t *types, Elf64_Rela *out)
{
	Elf64_Rela block[RELOCATIONS_BLOCK];
	uint64_t count = size / sizeof(block[0]);
	Elf64_Sym symbol;

	for (uint64_t i = 0; i < count && i < TABLE_MAX; i++) {
		uint64_t left = count - i < RELOCATIONS_BLOCK ? count - i : RELOCATIONS_BLOCK;
		int r = 0;

		if (i % RELOCATIONS_BLOCK == 0)
			r = elf_read(elf, table + i * sizeof(block[0]), block,
				     left * sizeof(block[0]));
		if (r < 0)
			return r;
		*out = block[i % RELOCATIONS_BLOCK];
		if (!ELF64_R_SYM(out->r_info) || !is_one_of(ELF64_R_TYPE(out->r_info), types))
			continue;
		r = is_called(elf, &elf->dynamic, ELF64_R_SYM(out->r_info), name, &symbol);
		if (r)
			return r < 0 ? r : 0;
	}
	return -ENOENT;
}

int elf_relocation(const struct elf *elf, const char *name, const uint32_t *types, uint32_t *type,
		   uint64_t *vaddr)
{
	const struct elf_dynamic *d = &elf->dynamic;
	Elf64_Rela found;
	int r = find_relocation(elf, d->relocations, d->relocations_bytes, name, types, &found);

	if (r == -ENOENT)
		r = find_relocation(elf, d->calls, d->calls_bytes, name, types, &found);
	if (r < 0)
		return r;
	*type = (uint32_t)ELF64_R_TYPE(found.r_info);
	*vaddr = found.r_offset;
	return 0;
}

int elf_needed(const struct elf *elf, const char *prefix, char *out, size_t size)
{
	const struct elf_dynamic *d = &elf->dynamic;

	for (uint32_t i = 0; i < d->needed_len; i++) {
		uint64_t at = d->needed[i], left = at < d->strings_len ? d->strings_len - at : 0;
		size_t len = left < size ? left : size;

		if (elf_read(elf, d->strings + at, out, len) == 0 && memchr(out, '\0', len) &&
		    !strncmp(out, prefix, strlen(prefix)))
			return 0;
	}
	return -ENOENT;
}

/* elf(5), "Notes": name and description padded to the segment's alignment, 4 or 8. */
static int find_build_id(const char *notes, size_t len, size_t align, uint8_t id[ELF_BUILD_ID_MAX])
{
	size_t at = 0;

	while (len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr head;
		size_t name, text, end;

		memcpy(&head, notes + at, sizeof(head));
		name = at + sizeof(head);
		if (head.n_namesz > len || head.n_descsz > len)
			return -EBADMSG;
		text = name + ((head.n_namesz + align - 1) & -align);
		end = text + ((head.n_descsz + align - 1) & -align);
		if (text > len || head.n_descsz > len - text)
			return -EBADMSG;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && head.n_descsz &&
		    head.n_descsz <= ELF_BUILD_ID_MAX) {
			memcpy(id, notes + text, head.n_descsz);
			return head.n_descsz;
		}
		if (end > len)
			break;
		at = end;
	}
	return -ENOENT;
}

int elf_build_id(const struct elf *elf, uint8_t id[ELF_BUILD_ID_MAX])
{
	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];
		_cleanup_(freep) char *notes = NULL;
		int r;

		if (s->p_type != PT_NOTE || !s->p_filesz || s->p_filesz > NOTES_MAX)
			continue;
		notes = malloc(s->p_filesz);
		if (!notes)
			return -ENOMEM;
		r = read_at(elf, s->p_offset, notes, s->p_filesz);
		if (r >= 0)
			r = find_build_id(notes, s->p_filesz, s->p_align == 8 ? 8 : 4, id);
		if (r > 0)
			return r;
	}
	return -ENOENT;
}

void elf_build_text(const struct elf *elf, char text[ELF_BUILD_TEXT_BYTES])
{
	uint8_t id[ELF_BUILD_ID_MAX];
	int len = elf_build_id(elf, id);

	text[0] = '\0';
	for (int i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}
