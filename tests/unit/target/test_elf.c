/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/elf.h"
#include "target/proc.h"

/* Of the libraries in the fuzzer's corpus, of x86-64: _PyRuntime is 64 bytes in a section of its
 * own. */
#define CORPUS_VERSION 0x030b02f0

static int open_corpus(const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), PYEBPF_CORPUS "/elf/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return fd;
}

static void test_elf_finds_symbols_with_every_kind_of_table(void **state)
{
	static const struct {
		const char *name;
		int want_static;  /* of elf_static_symbol() */
		int want_section; /* of elf_section() */
	} cases[] = {
		{ "gnu", 0, 0 },
		{ "sysv", 0, 0 },
		{ "both", 0, 0 },
		{ "gnu-stripped", -ENOENT, 0 },
		{ "sysv-stripped", -ENOENT, 0 },
		{ "both-stripped", -ENOENT, 0 },
		{ "gnu-no-sections", -ENOENT, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(closep) int fd = open_corpus(cases[i].name);
		_cleanup_(elf_freep) struct elf *elf = NULL;
		struct elf_symbol symbol, local = { 0 };
		struct elf_section section;
		uint8_t id[ELF_BUILD_ID_MAX];
		uint64_t version = 0;

		assert_int_equal(elf_open_any(fd, &elf), 0);
		if (elf_dynamic_symbol(elf, "Py_Version", &symbol) < 0 || symbol.size != 8 ||
		    elf_read(elf, symbol.vaddr, &version, 8) < 0 || version != CORPUS_VERSION)
			fail_msg("%s: Py_Version is 0x%llx", cases[i].name,
				 (unsigned long long)version);
		if (elf_dynamic_symbol(elf, "_PyRuntime", &symbol) < 0 || symbol.size != 64)
			fail_msg("%s: no _PyRuntime", cases[i].name);
		if (elf_dynamic_symbol(elf, "_PyRuntim", &local) != -ENOENT ||
		    elf_dynamic_symbol(elf, "", &local) != -ENOENT ||
		    elf_dynamic_symbol(elf, "PyRuntime", &local) != -ENOENT)
			fail_msg("%s: a symbol that is not there", cases[i].name);
		if (elf_static_symbol(elf, "_PyRuntime", &local) != cases[i].want_static ||
		    (!cases[i].want_static && local.vaddr != symbol.vaddr))
			fail_msg("%s: _PyRuntime in .symtab", cases[i].name);
		if (elf_static_symbol(elf, "PyRuntime", &local) != -ENOENT)
			fail_msg("%s: the end of a name is no name", cases[i].name);
		if (elf_section(elf, ".PyRuntime", &section) != cases[i].want_section ||
		    (!cases[i].want_section &&
		     (section.vaddr != symbol.vaddr || section.size != 64)))
			fail_msg("%s: section .PyRuntime", cases[i].name);
		if (elf_build_id(elf, id) != 20)
			fail_msg("%s: no build id", cases[i].name);
		if (elf_read(elf, UINT64_MAX - 4, &version, 8) != -ENOENT ||
		    elf_read(elf, symbol.vaddr, &version, 1u << 20) != -ENOENT)
			fail_msg("%s: bytes that the file does not have", cases[i].name);
	}
}

static void test_elf_open_refuses_other_files(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint8_t value;
		size_t len;
		int want;
	} cases[] = {
		{ "empty", 0, 0x7f, 0, -ENOEXEC },
		{ "cut in the head", 0, 0x7f, 63, -ENOEXEC },
		{ "cut in the segments", 0, 0x7f, 128, -EBADMSG },
		{ "no magic", 1, 'F', 1024, -ENOEXEC },
		{ "32-bit", EI_CLASS, ELFCLASS32, 1024, -ENOEXEC },
		{ "big-endian", EI_DATA, ELFDATA2MSB, 1024, -ENOEXEC },
		{ "another machine", 18, EM_MIPS, 1024, -ENOEXEC },
		{ "an object file", 16, ET_REL, 1024, -ENOEXEC },
		{ "odd segments", 54, 55, 1024, -EBADMSG },
		{ "no segments", 56, 0, 1024, -EBADMSG },
		{ "segments behind the end", 34, 1, 1024, -EBADMSG },
	};
	_cleanup_(closep) int corpus = open_corpus("gnu");
	uint8_t bytes[1024];

	(void)state;
	assert_int_equal(pread(corpus, bytes, sizeof(bytes), 0), sizeof(bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(closep) int fd = memfd_create("elf", MFD_CLOEXEC);
		struct elf *elf = NULL;
		uint8_t copy[sizeof(bytes)];
		int r;

		memcpy(copy, bytes, sizeof(copy));
		copy[cases[i].at] = cases[i].value;
		assert_int_equal(pwrite(fd, copy, cases[i].len, 0), cases[i].len);
		r = elf_open(fd, &elf);
		if (r != cases[i].want || elf)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
	}
	elf_free(NULL);
}

static void find_own_mapping(uint64_t here, struct mapping *m)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	int r;

	assert_int_equal(maps_open(getpid(), &maps), 0);
	while ((r = maps_next(maps, m)) > 0)
		if (here >= m->start && here < m->end)
			break;
	assert_int_equal(r, 1);
}

/* Our own file and libc: what the dynamic linker says is what we must find. */
static void check_own_address(const void *addr, const char *symbol_name, bool is_static)
{
	const uint64_t here = (uintptr_t)addr;
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct elf_symbol symbol;
	struct file_id id;
	struct mapping m;
	uint64_t bias;
	int r;

	find_own_mapping(here, &m);
	fd = proc_mapped_open(getpid(), &m, &id);
	assert_true(fd >= 0);
	assert_int_equal(id.inode, m.inode);
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(id.size, elf->size);
	r = is_static ? elf_static_symbol(elf, symbol_name, &symbol)
		      : elf_dynamic_symbol(elf, symbol_name, &symbol);
	assert_int_equal(r, 0);
	assert_int_equal(elf_load_bias(elf, &m, &bias), 0);
	if (bias + symbol.vaddr != here)
		fail_msg("%s: found at 0x%llx, is at 0x%llx", symbol_name,
			 (unsigned long long)(bias + symbol.vaddr), (unsigned long long)here);
}

static void test_elf_load_bias_leads_to_real_addresses(void **state)
{
	(void)state;
	check_own_address((const void *)(uintptr_t)check_own_address, "check_own_address", true);
	check_own_address(dlsym(RTLD_DEFAULT, "getppid"), "getppid", false);
}

/* The dynamic linker has put a library's function where our file says it wants it. */
static void test_elf_slot_and_needed_of_our_own_file(void **state)
{
	const uint64_t here = (uintptr_t)find_own_mapping;
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char name[64];
	uint64_t bias, slot;
	struct mapping m;
	void *led;

	(void)state;
	find_own_mapping(here, &m);
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(elf_load_bias(elf, &m, &bias), 0);
	assert_int_equal(elf_needed(elf, "libcmocka", name, sizeof(name)), 0);
	assert_string_equal(name, "libcmocka.so.0");
	assert_int_equal(elf_needed(elf, "libcmocka", name, 5), -ENOENT);
	assert_int_equal(elf_needed(elf, "libpython", name, sizeof(name)), -ENOENT);
	assert_int_equal(elf_slot(elf, "_cmocka_run_group_tests", &slot), 0);
	memcpy(&led, (const void *)(uintptr_t)(bias + slot), sizeof(led));
	assert_ptr_equal(led, dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests"));
	assert_int_equal(elf_slot(elf, "Py_BytesMain", &slot), -ENOENT);
	assert_true(bias + elf_first_text(elf)->p_vaddr <= here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elf_finds_symbols_with_every_kind_of_table),
		cmocka_unit_test(test_elf_open_refuses_other_files),
		cmocka_unit_test(test_elf_load_bias_leads_to_real_addresses),
		cmocka_unit_test(test_elf_slot_and_needed_of_our_own_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
