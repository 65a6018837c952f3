/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_MADE_OFFSETS_H
#define TESTS_MADE_OFFSETS_H

#include <stdbool.h>

#include "target/offsets.h"

/*
 * The offsets of any version, for memory that tests make. Of 3.6 to 3.15; from 3.13 on, which says
 * its own at run time, also free-threaded: what is read of them is where 3.12 has it.
 */
static inline struct py_offsets made_offsets(unsigned int minor, bool is_free_threaded)
{
	struct py_offsets off = { 0 };

	offsets_find(VERSION_HEX(3, minor < 12 ? minor : 12, 4, VERSION_LEVEL_FINAL), 0, false,
		     &off);
	off.minor = minor;
	if (minor == 6)
		off.runtime_interpreters_head = 16;
	if (minor >= 13 && is_free_threaded) {
		off.is_free_threaded = true;
		off.str_length += 16;
		off.str_state += 16;
		off.str_ascii_data += 16;
		off.str_compact_data += 16;
		off.bytes_size += 16;
		off.bytes_data += 16;
	}
	return off;
}

#endif
