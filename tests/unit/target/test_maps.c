/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/maps.h"

#define RX (PROT_READ | PROT_EXEC)

static void test_mapping_parse_reads_every_kind_of_line(void **state)
{
	static const struct {
		const char *name;
		const char *line;
		int want;
		struct mapping m;
	} cases[] = {
		{ "a library",
		  "7f01b2c00000-7f01b2e28000 r-xp 00028000 fe:01 262161     /usr/lib/libc.so.6",
		  0,
		  { 0x7f01b2c00000, 0x7f01b2e28000, 0x28000, 262161, 0xfe, 1, RX, false, false,
		    false, "/usr/lib/libc.so.6" } },
		{ "shared, a wide device",
		  "1000-2000 rw-s fffffffff000 1f:fffff 18446744073709551615 /dev/shm/a b",
		  0,
		  { 0x1000, 0x2000, 0xfffffffff000, UINT64_MAX, 0x1f, 0xfffff,
		    PROT_READ | PROT_WRITE, true, false, false, "/dev/shm/a b" } },
		{ "deleted",
		  "1000-2000 r-xp 00000000 08:02 7 /tmp/x (deleted)",
		  0,
		  { 0x1000, 0x2000, 0, 7, 8, 2, RX, false, true, false, "/tmp/x" } },
		{ "newlines come back",
		  "1000-2000 r-xp 00000000 08:02 7 /tmp/a\\012b\\012 (deleted)",
		  0,
		  { 0x1000, 0x2000, 0, 7, 8, 2, RX, false, true, false, "/tmp/a\nb\n" } },
		{ "other backslashes stay",
		  "1000-2000 r-xp 00000000 08:02 7 /tmp/\\011\\\\012",
		  0,
		  { 0x1000, 0x2000, 0, 7, 8, 2, RX, false, false, false, "/tmp/\\011\\\n" } },
		{ "no path",
		  "1000-2000 ---p 00000000 00:00 0 ",
		  0,
		  { 0x1000, 0x2000, 0, 0, 0, 0, 0, false, false, false, "" } },
		{ "no path and no blank",
		  "1000-2000 ---p 00000000 00:00 0",
		  0,
		  { 0x1000, 0x2000, 0, 0, 0, 0, 0, false, false, false, "" } },
		{ "a name that is no path",
		  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]",
		  0,
		  { 0xffffffffff600000, 0xffffffffff601000, 0, 0, 0, 0, PROT_EXEC, false, false,
		    false, "[vsyscall]" } },
		{ "empty", "", -EBADMSG, { 0 } },
		{ "words", "Permission denied", -EBADMSG, { 0 } },
		{ "ends in the addresses", "1000-2000", -EBADMSG, { 0 } },
		{ "ends in the permissions", "1000-2000 r-x", -EBADMSG, { 0 } },
		{ "ends in the device", "1000-2000 r-xp 00000000 08:", -EBADMSG, { 0 } },
		{ "unknown permission", "1000-2000 rqxp 00000000 08:02 7 /a", -EBADMSG, { 0 } },
		{ "end before start", "2000-1000 r-xp 00000000 08:02 7 /a", -EBADMSG, { 0 } },
		{ "more than 64 bits",
		  "10000000000000000-20000000000000000 r-xp 00000000 08:02 7 /a",
		  -EBADMSG,
		  { 0 } },
		{ "capital digits", "A000-B000 r-xp 00000000 08:02 7 /a", -EBADMSG, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct mapping *want = &cases[i].m;
		struct mapping m = { 0 };
		char line[256];
		int r;

		snprintf(line, sizeof(line), "%s", cases[i].line);
		r = mapping_parse(line, strlen(line), &m);
		if (r != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
		if (r < 0)
			continue;
		if (m.start != want->start || m.end != want->end || m.offset != want->offset ||
		    m.inode != want->inode || m.dev_major != want->dev_major ||
		    m.dev_minor != want->dev_minor || m.perms != want->perms ||
		    m.is_shared != want->is_shared || m.is_deleted != want->is_deleted ||
		    strcmp(m.path, want->path))
			fail_msg("%s: another mapping than expected, path \"%s\"", cases[i].name,
				 m.path);
	}
}

static struct maps *maps_of(const char *text, size_t len)
{
	struct maps *maps = NULL;
	int fd = memfd_create("maps", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, len, 0), len);
	assert_int_equal(maps_from_fd(fd, &maps), 0);
	return maps;
}

static void test_maps_next_reads_ten_thousand_mappings(void **state)
{
	enum { COUNT = 12000 };
	_cleanup_(freep) char *text = malloc(COUNT * 80);
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < COUNT; i++)
		len += snprintf(text + len, 80, "%x-%x r-xp 00000000 08:02 %d      /lib/%d.so\n",
				(i + 1) * 4096, (i + 2) * 4096, i + 1, i);
	maps = maps_of(text, len);
	for (int i = 0; i < COUNT; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/lib/%d.so", i);
		assert_int_equal(maps_next(maps, &m), 1);
		assert_int_equal(m.inode, i + 1);
		assert_string_equal(m.path, path);
	}
	assert_int_equal(maps_next(maps, &m), 0);
	assert_int_equal(maps_next(maps, &m), 0);
}

static void test_maps_next_cuts_a_path_that_does_not_fit(void **state)
{
	enum { LONG = 3 * MAPS_LINE_MAX };
	static const char head[] = "1000-2000 r-xp 00000000 08:02 7 /";
	static const char last[] = "\n3000-4000 r-xp 00000000 08:02 8 /b";
	_cleanup_(freep) char *text = malloc(LONG + sizeof(last));
	_cleanup_(maps_closep) struct maps *maps = NULL;
	struct mapping m;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', LONG);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + LONG, last, sizeof(last));
	maps = maps_of(text, LONG + sizeof(last) - 1);
	assert_int_equal(maps_next(maps, &m), 1);
	assert_true(m.is_cut);
	assert_int_equal(m.inode, 7);
	assert_int_equal(strlen(m.path), MAPS_LINE_MAX - (sizeof(head) - 2));
	assert_int_equal(maps_next(maps, &m), 1);
	assert_false(m.is_cut);
	assert_string_equal(m.path, "/b");
	assert_int_equal(maps_next(maps, &m), 0);
}

static void test_maps_open_finds_this_function(void **state)
{
	const uint64_t here = (uintptr_t)test_maps_open_finds_this_function;
	_cleanup_(maps_closep) struct maps *maps = NULL;
	char exe[512] = { 0 };
	struct mapping m;
	int found = 0, r;

	(void)state;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_int_equal(maps_open(getpid(), &maps), 0);
	while ((r = maps_next(maps, &m)) > 0) {
		if (here < m.start || here >= m.end)
			continue;
		found++;
		assert_string_equal(m.path, exe);
		assert_true(m.perms & PROT_EXEC);
		assert_true(m.inode != 0);
	}
	assert_int_equal(r, 0);
	assert_int_equal(found, 1);
}

static void test_maps_open_says_that_a_process_is_missing(void **state)
{
	struct maps *maps = NULL;

	(void)state;
	assert_int_equal(maps_open(4194305, &maps), -ENOENT); /* beyond PID_MAX_LIMIT */
	assert_null(maps);
	maps_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapping_parse_reads_every_kind_of_line),
		cmocka_unit_test(test_maps_next_reads_ten_thousand_mappings),
		cmocka_unit_test(test_maps_next_cuts_a_path_that_does_not_fit),
		cmocka_unit_test(test_maps_open_finds_this_function),
		cmocka_unit_test(test_maps_open_says_that_a_process_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
