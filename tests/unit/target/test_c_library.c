/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "target/c_library.h"

/* Debian's, of which the bytes that are asked for are kept: c_library/README.md. */
#define LIBC "libc-2.36-arm64.gz"
#define LIBPTHREAD "libpthread-2.31-arm64.gz"

static int unpack(const char *name)
{
	int fd = memfd_create("library", MFD_CLOEXEC), len;
	char path[4096], block[65536];
	gzFile from;

	snprintf(path, sizeof(path), PYEBPF_LIBRARIES "/%s", name);
	from = gzopen(path, "rb");
	assert_non_null(from);
	while ((len = gzread(from, block, sizeof(block))) > 0)
		assert_int_equal(write(fd, block, (size_t)len), len);
	assert_int_equal(len, 0);
	gzclose(from);
	return fd;
}

static void test_c_library_read_tells_where_threads_are(void **state)
{
	static const struct {
		const char *name, *file, *path;
		int want;
		struct c_library found;
	} cases[] = {
		{ "glibc 2.36", LIBC, "/lib/aarch64-linux-gnu/libc.so.6", 0, { 1856, 208 } },
		{ "by any name", LIBC, "/opt/other.so", 0, { 1856, 208 } },
		{ "glibc 2.31", LIBPTHREAD, "/lib/libpthread-2.31.so", 0, { 1792, 208 } },
		{ "its link", LIBPTHREAD, "libpthread.so.0", 0, { 1792, 208 } },
		{ "local symbols of other files", LIBPTHREAD, "/lib/libm.so.6", -ENOENT, { 0, 0 } },
		{ "musl", LIBC, "/lib/ld-musl-aarch64.so.1", 0, { 200, 32 } },
		{ "musl of Alpine", LIBC, "/lib/libc.musl-aarch64.so.1", 0, { 200, 32 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(closep) int fd = unpack(cases[i].file);
		_cleanup_(elf_freep) struct elf *elf = NULL;
		struct c_library found = { 0 };
		int r;

		assert_int_equal(elf_open_any(fd, &elf), 0);
		r = c_library_read(elf, cases[i].path, false, &found);
		if (r != cases[i].want || memcmp(&found, &cases[i].found, sizeof(found)))
			fail_msg("%s: %d, %u bytes, tid at %u", cases[i].name, r,
				 found.pthread_bytes, found.tid_at);
	}
}

/* Where the file has a symbol's bytes. */
static uint64_t offset_of(const struct elf *elf, const char *name)
{
	struct elf_symbol symbol;

	assert_int_equal(elf_dynamic_symbol(elf, name, &symbol), 0);
	for (size_t i = 0; i < elf->segments_len; i++) {
		const Elf64_Phdr *s = &elf->segments[i];

		if (s->p_type == PT_LOAD && symbol.vaddr - s->p_vaddr < s->p_filesz)
			return symbol.vaddr - s->p_vaddr + s->p_offset;
	}
	fail_msg("%s is not in the file", name);
	return 0;
}

static void test_c_library_read_refuses_what_cannot_be(void **state)
{
	static const struct {
		const char *name, *symbol;
		size_t word;
		uint32_t value;
		int want;
		struct c_library found;
	} cases[] = {
		{ "no bytes", C_LIBRARY_SYMBOL, 0, 0, -EBADMSG, { 0, 0 } },
		{ "odd", C_LIBRARY_SYMBOL, 0, 1857, -EBADMSG, { 0, 0 } },
		{ "too many", C_LIBRARY_SYMBOL, 0, PTHREAD_BYTES_MAX + 8, -EBADMSG, { 0, 0 } },
		{ "at most", C_LIBRARY_SYMBOL, 0, PTHREAD_BYTES_MAX, 0, { 16384, 208 } },
		{ "an id of 64 bits", "_thread_db_pthread_tid", 0, 64, 0, { 1856, 0 } },
		{ "an id behind the end", "_thread_db_pthread_tid", 2, 1856, 0, { 1856, 0 } },
		{ "the last place", "_thread_db_pthread_tid", 2, 1852, 0, { 1856, 1852 } },
		{ "an id at an odd place", "_thread_db_pthread_tid", 2, 209, 0, { 1856, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(closep) int fd = unpack(LIBC);
		_cleanup_(elf_freep) struct elf *elf = NULL;
		struct c_library found = { 0 };
		uint64_t at;
		int r;

		assert_int_equal(elf_open_any(fd, &elf), 0);
		at = offset_of(elf, cases[i].symbol) + 4 * cases[i].word;
		assert_int_equal(pwrite(fd, &cases[i].value, 4, (off_t)at), 4);
		r = c_library_read(elf, "libc.so.6", false, &found);
		if (r != cases[i].want || memcmp(&found, &cases[i].found, sizeof(found)))
			fail_msg("%s: %d, %u bytes, tid at %u", cases[i].name, r,
				 found.pthread_bytes, found.tid_at);
	}
}

/* The library that this test runs with: x86-64's, or under an emulator arm64's. */
static void test_c_library_read_tells_what_is_so_here(void **state)
{
	const char *self = (const char *)pthread_self();
	_cleanup_(elf_freep) struct elf *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct c_library found;
	Dl_info where;

	(void)state;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "getppid"), &where));
	fd = open(where.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_open(fd, &elf), 0);
	assert_int_equal(c_library_read(elf, where.dli_fname, false, &found), 0);
	assert_int_equal(found.pthread_bytes, (const char *)__builtin_thread_pointer() - self);
	assert_int_equal(THREAD_POINTER_IS_SELF, !found.pthread_bytes);
	assert_int_not_equal(found.tid_at, 0);
	assert_int_equal(*(const pid_t *)(self + found.tid_at), gettid());
}

/* A file of another machine is none that a process here could run. */
static void test_elf_open_refuses_other_machines(void **state)
{
	_cleanup_(closep) int fd = unpack(LIBC);
	struct elf *elf = NULL;

	(void)state;
#ifdef __aarch64__
	assert_int_equal(elf_open(fd, &elf), 0);
	elf_free(elf);
#else
	assert_int_equal(elf_open(fd, &elf), -ENOEXEC);
	assert_null(elf);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c_library_read_tells_where_threads_are),
		cmocka_unit_test(test_c_library_read_refuses_what_cannot_be),
		cmocka_unit_test(test_c_library_read_tells_what_is_so_here),
		cmocka_unit_test(test_elf_open_refuses_other_machines),
	};

	return cmocka_run_group_tests_name("c_library", tests, NULL, NULL);
}
