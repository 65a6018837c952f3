/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files that targets map: every question elf.h and c_library.h answer, on any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/c_library.h"
#include "target/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = { "_PyRuntime", "Py_Version", "absent", "version" };
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct elf_section section;
	struct elf_symbol symbol;
	struct c_library library;
	uint8_t id[ELF_BUILD_ID_MAX], buf[64];
	uint64_t bias;

	if (fd < 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len || elf_open_any(fd, &elf) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!elf_dynamic_symbol(elf, names[i], &symbol))
			(void)elf_read(elf, symbol.vaddr, buf, sizeof(buf));
		if (!elf_static_symbol(elf, names[i], &symbol))
			(void)elf_read(elf, symbol.vaddr, buf, sizeof(buf));
	}
	(void)elf_section(elf, ".PyRuntime", &section);
	if (!elf_needed(elf, "lib", (char *)buf, sizeof(buf)) && !memchr(buf, 0, sizeof(buf)))
		abort();
	(void)elf_slot(elf, "Py_BytesMain", &bias);
	(void)elf_first_text(elf);
	if (!c_library_read(elf, "libpthread.so", true, &library) &&
	    (library.pthread_bytes > PTHREAD_BYTES_MAX || library.tid_at >= PTHREAD_BYTES_MAX))
		abort();
	if (elf_build_id(elf, id) > ELF_BUILD_ID_MAX)
		abort();
	for (size_t i = 0; i < elf->segments_len; i++) {
		struct mapping m = { .start = 0x7f0000000000, .offset = elf->segments[i].p_offset };

		(void)elf_load_bias(elf, &m, &bias);
	}
	return 0;
}
