/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "target/mem.h"

static void test_mem_read_copies_all_or_fails(void **state)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t start = (uintptr_t)pages;
	char buf[64];

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, 'x', page);
	assert_int_equal(munmap(pages + page, page), 0);
	{
		const struct {
			const char *name;
			pid_t pid;
			uint64_t addr;
			size_t len;
			int want;
		} cases[] = {
			{ "inside", getpid(), start, 64, 0 },
			{ "to the last byte", getpid(), start + page - 64, 64, 0 },
			{ "nothing", getpid(), start, 0, 0 },
			{ "over the edge", getpid(), start + page - 63, 64, -EFAULT },
			{ "not mapped", getpid(), start + page, 1, -EFAULT },
			{ "null", getpid(), 0, 8, -EFAULT },
			{ "kernel", getpid(), 0xffff800000000000, 8, -EFAULT },
			{ "wraps around", getpid(), UINT64_MAX - 3, 8, -EFAULT },
			{ "no such process", 4194305, start, 8, -ESRCH },
			{ "too much", getpid(), start, MEM_READ_MAX + 1ull, -E2BIG },
		};

		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			int r = mem_read(cases[i].pid, cases[i].addr, buf, cases[i].len);

			if (r != cases[i].want)
				fail_msg("%s: got %d, want %d", cases[i].name, r, cases[i].want);
		}
	}
	assert_int_equal(mem_read(getpid(), start + page - 64, buf, 64), 0);
	assert_memory_equal(buf, pages, 64);
	assert_int_equal(mem_read(4194305, start, buf, 8), -ESRCH);
	assert_string_equal(err_message(-ESRCH), "no process with pid 4194305");
	munmap(pages, page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mem_read_copies_all_or_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
