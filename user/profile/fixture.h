/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_FIXTURE_H
#define PROFILE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

/*
 * What tests have made ready, and taken away, by pytest (3 and newer) and unittest (CPython 3.8 and
 * newer): fixtures, setUp(), setup_class(), cleanups. A stack does not tell for which test.
 */
enum fixture_role {
	FIXTURE_NONE,   /* below a caller: the fixture, or what it calls */
	FIXTURE_CALLER, /* what it calls is a fixture */
	FIXTURE_RUNNER, /* may stand between the two: the runner's, the standard library's */
};
enum fixture_role fixture_role_of(const struct profile *p, uint32_t frame);

/* Is a pattern one of tests: "test_*", "TestCart.test_*"? */
bool fixture_is_of_tests(const char *pattern);

/* The frame that stands for a fixture's: "fixture NAME". 0, -ENOMEM, -EOVERFLOW. */
#define FIXTURE_PREFIX "fixture " /* no function has a space in its name */
int fixture_frame(struct profile *p, uint32_t frame, uint32_t *made);

#endif
