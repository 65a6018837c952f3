/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/sample_flag.h"

#include <string.h>

#include "profile/profile.h"

const struct sample_flag sample_flags[] = {
	{ SAMPLE_BIT_HOLDS_GIL, "gil" },
	{ SAMPLE_BIT_KERNEL, "kernel" },
	{ SAMPLE_BIT_TRUNCATED, "truncated" },
	{ SAMPLE_BIT_FAULT, "fault" },
	{ SAMPLE_BIT_CUT, "cut" },
	{ SAMPLE_BIT_AMBIGUOUS, "ambiguous" },
	{ SAMPLE_BIT_APPROX_LINES, "approximate_lines" },
	{ SAMPLE_BIT_EPISODE, "episode" },
};
const size_t sample_flag_count = sizeof(sample_flags) / sizeof(sample_flags[0]);

uint16_t sample_flag_bit(const char *name, size_t len)
{
	for (size_t i = 0; i < sample_flag_count; i++)
		if (strlen(sample_flags[i].name) == len && !memcmp(sample_flags[i].name, name, len))
			return sample_flags[i].bit;
	return 0;
}
