/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/rights.h"

static void test_rights_parse_takes_the_ids_of_the_file_system(void **state)
{
	static const char text[] = "Name:\tpython3\nUid:\t1\t2\t3\t1000\nGid:\t5\t6\t7\t100\n"
				   "FDSize:\t64\nGroups:\t4 24 1000 \nNStgid:\t7\n";
	static const char none[] =
		"Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nA:\t9\n";
	struct rights r;

	(void)state;
	assert_int_equal(rights_parse(text, strlen(text), &r), 0);
	assert_int_equal(r.uid, 1000);
	assert_int_equal(r.gid, 100);
	assert_int_equal(r.group_count, 3);
	assert_int_equal(r.groups[2], 1000);
	assert_false(r.reads_all);
	assert_int_equal(rights_parse(none, strlen(none), &r), 0);
	assert_int_equal(r.group_count, 0);
	assert_false(r.may_have_more);
	assert_int_equal(rights_parse("Uid:\t1\n", 7, &r), -EBADMSG);
}

static void test_rights_allow_as_mode_bits_say(void **state)
{
	static const struct {
		const char *name;
		struct rights who;
		mode_t mode;
		bool has_acl, allowed;
	} cases[] = {
		{ "the owner by the owner's bits", { .uid = 7, .gid = 1 }, 0400, false, true },
		{ "the owner, whom the bits deny", { .uid = 7, .gid = 1 }, 0044, false, false },
		{ "the group", { .uid = 8, .gid = 9 }, 0040, false, true },
		{ "the group, which the bits deny", { .uid = 8, .gid = 9 }, 0404, false, false },
		{ "a supplementary group",
		  { .uid = 8, .gid = 1, .groups = { 3, 9 }, .group_count = 2 },
		  0040,
		  false,
		  true },
		{ "a group that is not counted",
		  { .uid = 8, .gid = 1, .groups = { 3, 9 }, .group_count = 1 },
		  0040,
		  false,
		  false },
		{ "others", { .uid = 8, .gid = 1 }, 0004, false, true },
		{ "others, who may be in the group that is denied",
		  { .uid = 8, .gid = 1, .may_have_more = true },
		  0004,
		  false,
		  false },
		{ "others, who may be in the group",
		  { .uid = 8, .gid = 1, .may_have_more = true },
		  0044,
		  false,
		  true },
		{ "others, whom the bits deny", { .uid = 8, .gid = 1 }, 0770, false, false },
		{ "root without capabilities", { .uid = 0, .gid = 0 }, 0770, false, false },
		{ "a capability", { .uid = 8, .gid = 1, .reads_all = true }, 0, true, true },
		{ "others, with an access control list",
		  { .uid = 8, .gid = 1 },
		  0777,
		  true,
		  false },
		{ "the owner, with one", { .uid = 7, .gid = 1 }, 0400, true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stat st = { .st_mode = S_IFREG | cases[i].mode, .st_uid = 7, .st_gid = 9 };

		if (rights_allow(&cases[i].who, &st, cases[i].has_acl, 4) != cases[i].allowed)
			fail_msg("%s", cases[i].name);
	}
}

static char folder[] = "/tmp/test_rights.XXXXXX";

static void put(const char *name, mode_t mode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text\n", 5), 5);
	close(fd);
	assert_int_equal(chmod(path, mode), 0);
}

static int set_up(void **state)
{
	char path[64], link[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0711), 0);
	put("open.py", 0644);
	put("closed.py", 0600);
	snprintf(path, sizeof(path), "%s/private", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	put("private/open.py", 0644);
	snprintf(path, sizeof(path), "%s/fifo.py", folder);
	assert_int_equal(mkfifo(path, 0666), 0);
	snprintf(path, sizeof(path), "%s/out.py", folder);
	assert_int_equal(symlink("../../../../../../etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/open.py", folder);
	snprintf(link, sizeof(link), "%s/link.py", folder);
	assert_int_equal(symlink("open.py", link), 0);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "open.py", "closed.py", "private/open.py", "private",
					     "fifo.py", "out.py",    "link.py",         "" };
	char path[64];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		remove(path);
	}
	return 0;
}

static void test_rights_open_as_somebody_else(void **state)
{
	static const struct rights nobody = { .uid = 65534, .gid = 65534 };
	const struct rights owner = { .uid = getuid(), .gid = getgid() };
	static const struct {
		const char *name;
		int as_nobody, as_owner;
	} cases[] = {
		{ "open.py", 0, 0 },
		{ "link.py", 0, 0 },
		{ "closed.py", -EACCES, 0 },
		{ "private/open.py", -EACCES, 0 }, /* readable, in a directory that is not */
		{ "fifo.py", -EINVAL, -EINVAL },
		{ "absent.py", -ENOENT, -ENOENT },
		{ "private", -EINVAL, -EINVAL },
	};
	char path[64], bytes[5];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int wanted[] = { cases[i].as_nobody, cases[i].as_owner };

		snprintf(path, sizeof(path), "%s/%s", folder, cases[i].name);
		for (int by = 0; by < 2; by++) {
			int fd = rights_open(by ? &owner : &nobody, "/", path);

			if (fd < 0 ? fd != wanted[by] : wanted[by] != 0)
				fail_msg("%s: %d where %d is due", cases[i].name, fd, wanted[by]);
			if (fd < 0)
				continue;
			assert_int_equal(read(fd, bytes, sizeof(bytes)), 5);
			close(fd);
		}
	}
}

/* The kernel decides by who reads them: pyebpf would see more than the target. */
static void test_rights_open_refuses_what_the_kernel_makes_up(void **state)
{
	static const char *const paths[] = { "/proc/version", "/sys/devices/system/cpu/possible" };
	const struct rights all = { .reads_all = true };

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (rights_open(&all, "/", paths[i]) != -EINVAL)
			fail_msg("%s", paths[i]);
}

/* No symbolic link leads out of the base: the machine's /etc/passwd is not what is meant. */
static void test_rights_open_below_a_base(void **state)
{
	static const char *const inside[] = { "/../open.py", "/private/../link.py", "open.py" };
	const struct rights all = { .reads_all = true };

	(void)state;
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(rights_open(&all, "/proc/self/cwd", "/out.py"), -ENOENT);
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		int fd = rights_open(&all, "/proc/self/cwd", inside[i]);

		assert_true(fd >= 0);
		close(fd);
	}
	assert_int_equal(chdir("/"), 0);
}

static void test_rights_read_of_the_own_process(void **state)
{
	struct rights r;

	(void)state;
	assert_int_equal(rights_read(getpid(), &r), 0);
	assert_int_equal(r.uid, getuid());
	assert_int_equal(r.gid, getgid());
	assert_true(rights_are_equal(&r, &r));
	assert_true(rights_read(0x7fffffff, &r) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights_parse_takes_the_ids_of_the_file_system),
		cmocka_unit_test(test_rights_allow_as_mode_bits_say),
		cmocka_unit_test(test_rights_open_as_somebody_else),
		cmocka_unit_test(test_rights_open_refuses_what_the_kernel_makes_up),
		cmocka_unit_test(test_rights_open_below_a_base),
		cmocka_unit_test(test_rights_read_of_the_own_process),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
