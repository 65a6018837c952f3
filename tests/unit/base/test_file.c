/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

static char folder[] = "/tmp/pyebpf-test-XXXXXX";

/* Tests run inside an empty folder of their own. */
static int enter_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static unsigned int entries(void)
{
	DIR *dir = opendir(".");
	unsigned int count = 0;

	assert_non_null(dir);
	for (const struct dirent *e = readdir(dir); e; e = readdir(dir))
		count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	return count;
}

static void assert_content(const char *path, const char *want)
{
	_cleanup_(freep) char *got = NULL;
	size_t len = 0;

	assert_int_equal(file_read(path, 1 << 20, &got, &len), 0);
	assert_int_equal(len, strlen(want));
	assert_string_equal(got, want);
}

static int leave_folder(void **state)
{
	(void)state;
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void test_file_map_open_maps_the_whole_file(void **state)
{
	struct file_map *m = NULL;

	(void)state;
	assert_int_equal(file_map_open("/proc/self/exe", &m), 0);
	assert_memory_equal(m->data, "\177ELF", 4);
	file_map_free(m);
	file_map_free(NULL);
}

static void test_file_open_regular_refuses_the_rest_without_hanging(void **state)
{
	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(file_open_regular("fifo", NULL), -EINVAL);
	assert_string_equal(err_message(-EINVAL), "fifo: not a regular file");
	assert_int_equal(file_open_regular("/dev/null", NULL), -EINVAL);
	assert_int_equal(file_open_regular(".", NULL), -EINVAL);
	assert_int_equal(file_open_regular("absent", NULL), -ENOENT);
	unlink("fifo");
}

static void test_file_pread_stops_at_the_end(void **state)
{
	_cleanup_(closep) int fd = -1;
	char buf[16];

	(void)state;
	assert_int_equal(file_write_whole("f", "0123456789", 10), 0);
	fd = file_open_regular("f", NULL);
	assert_true(fd >= 0);
	assert_int_equal(file_pread(fd, buf, 4, 3), 4);
	assert_memory_equal(buf, "3456", 4);
	assert_int_equal(file_pread(fd, buf, sizeof(buf), 8), 2);
	assert_int_equal(file_pread(fd, buf, sizeof(buf), 10), 0);
	assert_int_equal(file_pread(fd, buf, sizeof(buf), UINT64_MAX), -EOVERFLOW);
	assert_int_equal(file_pread(fd, buf, sizeof(buf), INT64_MAX - 15), -EOVERFLOW);
	unlink("f");
}

static void test_file_read_rows(void **state)
{
	_cleanup_(freep) char *big = calloc(1, 200000);
	_cleanup_(freep) char *got = NULL;
	size_t len = 77;

	(void)state;
	assert_int_equal(file_write_whole("big", big, 200000), 0);
	assert_int_equal(file_read("big", 199999, &got, &len), -EFBIG);
	assert_null(got);
	assert_int_equal(len, 77);
	assert_int_equal(file_read("big", 200000, &got, &len), 0);
	assert_int_equal(len, 200000);
	free(take_ptr(got));
	unlink("big");

	/* says it has 0 bytes, and more than the limit of 4 */
	assert_int_equal(file_read("/proc/self/status", 4, &got, &len), -EFBIG);
	assert_int_equal(file_read("/proc/self/status", 1 << 16, &got, &len), 0);
	assert_memory_equal(got, "Name:", 5);
	assert_int_equal(got[len], 0);
}

static void test_atomic_file_appears_on_commit_only(void **state)
{
	struct atomic_file *f = NULL;
	struct stat st;

	(void)state;
	umask(022);
	assert_int_equal(file_write_whole("out", "old", 3), 0);
	assert_int_equal(atomic_file_open("out", &f), 0);
	fputs("new text", atomic_file_stream(f));
	assert_int_equal(entries(), 2);
	assert_content("out", "old");
	assert_int_equal(atomic_file_commit(f), 0);
	atomic_file_free(f);
	assert_content("out", "new text");
	assert_int_equal(entries(), 1);
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	unlink("out");
}

static void test_atomic_file_free_leaves_nothing(void **state)
{
	struct atomic_file *f = NULL;

	(void)state;
	assert_int_equal(file_write_whole("out", "old", 3), 0);
	assert_int_equal(atomic_file_open("out", &f), 0);
	fputs("never", atomic_file_stream(f));
	atomic_file_free(f);
	assert_content("out", "old");
	assert_int_equal(entries(), 1);
	unlink("out");
}

static void test_atomic_file_refuses_a_link(void **state)
{
	(void)state;
	assert_int_equal(file_write_whole("precious", "precious", 8), 0);
	assert_int_equal(symlink("precious", "link"), 0);
	assert_int_equal(file_write_whole("link", "profile", 7), -ELOOP);
	assert_content("precious", "precious");
	unlink("precious");
	unlink("link");
}

static void test_atomic_file_writes_devices_in_place(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(file_write_whole("/dev/null", "x", 1), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(file_write_whole("/dev/full", "x", 1), -ENOSPC);
	assert_string_equal(err_message(-ENOSPC), "write /dev/full: No space left on device");
	assert_int_equal(file_write_whole(".", "x", 1), -EISDIR);
	assert_int_equal(file_write_whole("absent/out", "x", 1), -ENOENT);
	assert_int_equal(entries(), 0);
}

/* Runs file_write_whole(path) with standard output sent to fd. */
static int write_with_stdout(int fd, const char *path, const char *text, size_t len)
{
	int saved, r;

	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	r = file_write_whole(path, text, len);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	return r;
}

static void test_atomic_file_dash_is_standard_output(void **state)
{
	static const char *const paths[] = { "-", "/dev/stdout" };
	int fd;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		fd = open("captured", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(write_with_stdout(fd, paths[i], "text", 4), 0);
		close(fd);
		assert_content("captured", "text");
		unlink("captured");
	}
}

static void test_atomic_file_closed_pipe_is_epipe(void **state)
{
	static char megabyte[1 << 20]; /* fails while writing, not at the last flush */
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(write_with_stdout(ends[1], "-", megabyte, sizeof(megabyte)), -EPIPE);
	assert_int_equal(write_with_stdout(ends[1], "-", "x", 1), -EPIPE);
	close(ends[1]);
}

static void test_file_make_directory(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(file_make_directory("made/by/us", 0700), 0);
	assert_int_equal(file_make_directory("made/by/us/", 0755), 0);
	assert_int_equal(stat("made/by/us", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(file_make_directory("/dev/null/x", 0700), -ENOTDIR);
	assert_string_equal(err_message(-ENOTDIR), "/dev/null/x: Not a directory");
	assert_int_equal(rmdir("made/by/us"), 0);
	assert_int_equal(rmdir("made/by"), 0);
	assert_int_equal(rmdir("made"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_map_open_maps_the_whole_file),
		cmocka_unit_test(test_file_open_regular_refuses_the_rest_without_hanging),
		cmocka_unit_test(test_file_pread_stops_at_the_end),
		cmocka_unit_test(test_file_read_rows),
		cmocka_unit_test(test_file_make_directory),
		cmocka_unit_test(test_atomic_file_appears_on_commit_only),
		cmocka_unit_test(test_atomic_file_free_leaves_nothing),
		cmocka_unit_test(test_atomic_file_refuses_a_link),
		cmocka_unit_test(test_atomic_file_writes_devices_in_place),
		cmocka_unit_test(test_atomic_file_dash_is_standard_output),
		cmocka_unit_test(test_atomic_file_closed_pipe_is_epipe),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
