/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_SKIP_H
#define TESTS_UNIT_SKIP_H

#include <cmocka.h>

/* Leaves a test out, for a reason that tests/run.py repeats and holds against its list. */
#define SKIP(reason)                                    \
	do {                                            \
		print_message("SKIPPED: " reason "\n"); \
		skip();                                 \
	} while (0)

#endif
