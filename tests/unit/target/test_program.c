/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/maps.h"

/* Start of our executable mapping that holds addr. */
static uint64_t text_of(const void *addr)
{
	_cleanup_(maps_closep) struct maps *maps = NULL;
	uint64_t found = 0;
	struct mapping m;

	assert_int_equal(maps_open(getpid(), &maps), 0);
	while (maps_next(maps, &m) > 0)
		if (m.perms & PROT_EXEC && (uintptr_t)addr >= m.start && (uintptr_t)addr < m.end)
			found = m.start;
	return found;
}

/* The program's code: a function of ours. The "interpreter": the C library, or ourselves. */
static void test_find_lead(void **state)
{
	uint64_t own = text_of((void *)test_find_lead),
		 libc = text_of(dlsym(RTLD_DEFAULT, "getppid"));
	const struct {
		const char *name;
		uint64_t start_code, text_start, runtime;
		int want;
	} cases[] = {
		{ "in the program itself", own + 64, own, own + 4096, 1 },
		{ "in a library", own + 64, libc, libc + 4096, 0 },
		{ "no such mapping", own + 64, 4096, 8192, -ENOENT },
		{ "another program", 4096, libc, libc + 4096, -ESRCH },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct py_runtime rt = { .text_start = cases[i].text_start,
					 .runtime_addr = cases[i].runtime };
		int64_t distance = 0;
		int got = program_find_lead(getpid(), cases[i].start_code, &rt, &distance);

		if (got != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].name, got, cases[i].want);
		if (got == 1 && cases[i].start_code + distance != cases[i].runtime)
			fail_msg("%s: leads to %lx", cases[i].name, cases[i].start_code + distance);
		if (got == 0 && text_of(*(void **)(cases[i].start_code + distance)) != libc)
			fail_msg("%s: the pointer leads elsewhere", cases[i].name);
		if (got < 0 && distance)
			fail_msg("%s: distance is touched", cases[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_find_lead) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
