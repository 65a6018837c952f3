/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/folder.h"

#define MARK ".mark"

static char place[] = "/tmp/test_folder.XXXXXX";

static bool is_text(const char *name)
{
	return strstr(name, ".txt") != NULL;
}

static void write_text(const char *name)
{
	assert_int_equal(file_write_whole(name, name, strlen(name)), 0);
}

static unsigned int count_names(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

/* Writes a folder of one file. 0 or what failed first. */
static int write_folder(const char *path, const char *name)
{
	_cleanup_(folder_freep) struct folder *f = NULL;
	FILE *out;
	int r = folder_open(path, MARK, is_text, &f);

	if (r < 0)
		return r;
	assert_int_equal(folder_begin_file(f, name, &out), 0);
	fputs("text", out);
	assert_int_equal(folder_end_file(f), 0);
	return folder_commit(f);
}

static void test_commit_replaces_its_own_only(void **state)
{
	(void)state;
	assert_int_equal(write_folder("a/", "one.txt"), 0);
	assert_int_equal(access("a/one.txt", F_OK), 0);
	assert_int_equal(write_folder("a", "two.txt"), 0);
	assert_int_not_equal(access("a/one.txt", F_OK), 0);
	assert_int_equal(count_names("a"), 2);
	write_text("a/notes");
	assert_int_equal(write_folder("a", "one.txt"), -EEXIST);
	assert_int_equal(access("a/two.txt", F_OK), 0);
	assert_int_equal(count_names("."), 1); /* nothing is left beside it */
}

static void test_open_refuses(void **state)
{
	static const char *const refused[] = { "unmarked", "file", "link" };

	(void)state;
	assert_int_equal(mkdir("unmarked", 0700), 0);
	write_text("unmarked/one.txt");
	write_text("file");
	assert_int_equal(symlink("unmarked", "link"), 0);
	for (size_t i = 0; i < 3; i++)
		if (write_folder(refused[i], "two.txt") != -EEXIST)
			fail_msg("%s: was not refused", refused[i]);
	assert_int_equal(write_folder("none/there", "two.txt"), -ENOENT);
	assert_int_equal(mkdir("empty", 0700), 0);
	assert_int_equal(write_folder("empty", "two.txt"), 0);
}

static void test_free_removes_what_was_begun(void **state)
{
	struct folder *f;
	FILE *out;

	(void)state;
	assert_int_equal(folder_open("begun", MARK, is_text, &f), 0);
	assert_int_equal(folder_begin_file(f, "one.txt", &out), 0);
	assert_int_equal(count_names("."), 1);
	folder_free(f);
	assert_int_equal(count_names("."), 0);
}

/* Of all files together. A write that does not fit is the last. */
static void test_limit_counts_all_files(void **state)
{
	static const int ends[] = { 0, 0, -E2BIG };
	_cleanup_(folder_freep) struct folder *f = NULL;
	FILE *out;

	(void)state;
	assert_int_equal(folder_open("limited", MARK, is_text, &f), 0);
	folder_limit(f, 10);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char name[] = "0.txt";

		name[0] += (char)i;
		assert_int_equal(folder_begin_file(f, name, &out), 0);
		fputs("text", out);
		assert_int_equal(folder_end_file(f), ends[i]);
	}
}

static int enter(void **state)
{
	(void)state;
	memset(place + sizeof(place) - 7, 'X', 6);
	return mkdtemp(place) && !chdir(place) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int leave(void **state)
{
	(void)state;
	return chdir("/") || nftw(place, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commit_replaces_its_own_only, enter, leave),
		cmocka_unit_test_setup_teardown(test_open_refuses, enter, leave),
		cmocka_unit_test_setup_teardown(test_free_removes_what_was_begun, enter, leave),
		cmocka_unit_test_setup_teardown(test_limit_counts_all_files, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
