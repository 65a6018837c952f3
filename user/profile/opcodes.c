/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/opcodes.h"

#include <stddef.h>

#include "profile/opcode_names.h"

#define MINORS (sizeof(names_by_minor) / sizeof(names_by_minor[0]))
#define NAMES (sizeof(names_3_6) / sizeof(names_3_6[0]))

const char *opcode_name(unsigned int minor, unsigned int opcode)
{
	return minor < MINORS && names_by_minor[minor] && opcode < NAMES
		       ? names_by_minor[minor][opcode]
		       : NULL;
}
