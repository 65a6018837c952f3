/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "inspect/process.h"
#include "inspect/sources.h"
#include "target/proc.h"

/* Ourselves, as dump has a process that it has read. */
static struct inspect_process own_process(void)
{
	struct inspect_process p = { .pid = getpid(), .door = gettid() };
	struct proc_stat stat;

	assert_int_equal(proc_stat(p.pid, &stat), 0);
	assert_int_equal(rights_read(p.door, &p.rights), 0);
	p.start_ticks = stat.start_ticks;
	return p;
}

static bool shows_line(const struct inspect_process *p, const char *path)
{
	_cleanup_(sources_freep) struct sources *s = NULL;
	struct source_line line;

	assert_int_equal(sources_new(&s), 0);
	return sources_line(s, p, path, 1, &line);
}

/* A later process with the PID may be in another root, and have the same rights there. */
static void test_sources_line_is_of_the_process_that_was_read(void **state)
{
	char path[] = "/tmp/test_sources.XXXXXX";
	struct inspect_process p = own_process(), later = p, other_thread = p;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text\n", 5), 5);
	close(fd);
	later.start_ticks++;
	other_thread.door = 1;
	rights_read(1, &other_thread.rights);
	assert_true(shows_line(&p, path));
	assert_false(shows_line(&later, path));
	assert_false(shows_line(&other_thread, path));
	unlink(path);
}

static void test_sources_line_of_the_kernels_files(void **state)
{
	static const char *const paths[] = { "/proc/version", "/sys/devices/system/cpu/possible" };
	struct inspect_process p = own_process();

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_false(shows_line(&p, paths[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sources_line_is_of_the_process_that_was_read),
		cmocka_unit_test(test_sources_line_of_the_kernels_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
