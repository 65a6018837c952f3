/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Windows as files, in a directory that others may write to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/files.h"
#include "base/clock.h"
#include "base/err.h"
#include "tests/unit/skip.h"

#define START_NS (1767225600 * NS_PER_SECOND) /* 2026-01-01 00:00:00 UTC */

struct fixture {
	char folder[64];
	struct profile *profile;
	struct config_output config;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->folder, sizeof(f->folder), "/tmp/pyebpf-files-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	assert_int_equal(profile_new(&f->profile), 0);
	profile_recording(f->profile)->start_realtime_ns = START_NS;
	f->config = (struct config_output){ .directory = f->folder, .keep = 2 };
	*state = f;
	return 0;
}

/* A path in the folder, until the next call. */
static const char *path_of(const struct fixture *f, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	return path;
}

static const char *window_of(const struct fixture *f, int second)
{
	char name[64];

	snprintf(name, sizeof(name), "pyebpf-20260101T0000%02dZ.pyebpf", second);
	return path_of(f, name);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	DIR *dir = opendir(f->folder);
	const struct dirent *d;

	assert_non_null(dir);
	while ((d = readdir(dir)))
		unlink(path_of(f, d->d_name));
	closedir(dir);
	assert_int_equal(rmdir(f->folder), 0);
	profile_free(f->profile);
	free(f);
	return 0;
}

static void touch(const char *path, uid_t owner)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
	close(fd);
}

static bool has(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static int write_window(struct fixture *f, int second)
{
	profile_recording(f->profile)->start_realtime_ns = START_NS + second * NS_PER_SECOND;
	return files_write(&f->config, f->profile);
}

static void test_files_write_keeps_the_last(void **state)
{
	struct fixture *f = *state;

	touch(path_of(f, "pyebpf-notes-Z.pyebpf"), geteuid());
	for (int second = 0; second < 4; second++)
		assert_int_equal(write_window(f, second), 0);
	for (int second = 0; second < 4; second++)
		assert_int_equal(has(window_of(f, second)), second >= 2);
	assert_true(has(path_of(f, "pyebpf-notes-Z.pyebpf")));
}

/* Files of others neither count nor go; a link that leads nowhere is a name that is taken. */
static void test_files_write_leaves_files_of_others(void **state)
{
	struct fixture *f = *state;

	if (geteuid())
		SKIP("only root gives files away");
	touch(window_of(f, 0), 65534);
	touch(window_of(f, 59), 65534);
	assert_int_equal(symlink("/nowhere/at/all", window_of(f, 1)), 0);
	for (int second = 0; second < 4; second++)
		assert_int_equal(write_window(f, second), 0);
	for (int second = 0; second < 7; second++) /* what begins at 0, 1, 2, 3 is at 2, 3, 4, 5 */
		assert_int_equal(has(window_of(f, second)),
				 second < 2 || second == 4 || second == 5);
	assert_true(has(window_of(f, 59)));
}

/* A user who has taken the names of a minute costs a window, and a message says so. */
static void test_files_write_does_not_look_for_a_name_for_ever(void **state)
{
	struct fixture *f = *state;

	for (int second = 0; second < 60; second++)
		touch(window_of(f, second), geteuid());
	assert_int_equal(write_window(f, 0), -EEXIST);
	assert_non_null(strstr(err_message(-EEXIST), "pyebpf-20260101T000000Z"));
	assert_int_equal(write_window(f, 1), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_files_write_keeps_the_last),
		TEST(test_files_write_leaves_files_of_others),
		TEST(test_files_write_does_not_look_for_a_name_for_ever),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
