/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/asyncio_debug.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "target/elf.h"
#include "target/maps.h"

#define FIRST_MINOR 14

/* The extension module, by its name, or the interpreter's own file. */
static bool may_have_asyncio(const struct inspect_process *p, const struct mapping *m)
{
	const char *name = strrchr(m->path, '/');

	if (!m->inode || !(m->perms & PROT_EXEC))
		return false;
	return m->inode == p->runtime.text_inode || (name && !strncmp(name, "/_asyncio.", 10));
}

static int read_section(const struct inspect_process *p, const struct mapping *m, uint64_t *words)
{
	_cleanup_(closep) int fd = proc_mapped_open(p->door, m, NULL);
	_cleanup_(elf_freep) struct elf *elf = NULL;
	struct elf_section section;
	int e;

	if (fd < 0)
		return fd;
	if ((e = elf_open(fd, &elf)) < 0 || (e = elf_section(elf, ".AsyncioDebug", &section)) < 0)
		return e;
	if (section.size < ASYNCIO_DEBUG_WORDS * sizeof(*words))
		return -ENOENT;
	return elf_read(elf, section.vaddr, words, ASYNCIO_DEBUG_WORDS * sizeof(*words));
}

int asyncio_debug_find(const struct inspect_process *p, uint64_t words[ASYNCIO_DEBUG_WORDS])
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	int e = -ENOENT;

	if (p->runtime.offsets.minor < FIRST_MINOR || maps_open(p->door, &maps) < 0)
		goto out;
	while (e < 0 && maps_next(maps, &m) > 0)
		if (may_have_asyncio(p, &m))
			e = read_section(p, &m, words);
out:
	err_clear(); /* what it does not say, the table of versions does */
	return e;
}
