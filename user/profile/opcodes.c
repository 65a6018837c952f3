/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/opcodes.h"

#include <stddef.h>
#include <string.h>

#include "profile/opcode_names.h"

#define MINORS (sizeof(names_by_minor) / sizeof(names_by_minor[0]))
#define NAMES (sizeof(names_3_6) / sizeof(names_3_6[0]))

const char *opcode_name(unsigned int minor, unsigned int opcode)
{
	return minor < MINORS && names_by_minor[minor] && opcode < NAMES
		       ? names_by_minor[minor][opcode]
		       : NULL;
}

static bool begins_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/* Those that begin like a call and go on with a Python frame, or with the interpreter's own code.
 */
static const char *const not_c[] = {
	"CALL_INTRINSIC",
	"CALL_PY_",
	"CALL_BOUND_METHOD_",
	"CALL_KW_PY",
	"CALL_KW_BOUND_METHOD",
	"CALL_EX_PY",
	"PRECALL_PYFUNC",
	"PRECALL_BOUND_METHOD",
	"CALL_ALLOC_AND_ENTER_INIT",
};

bool opcode_calls_c(unsigned int minor, bool is_free_threaded, unsigned int opcode)
{
	const char *name = opcode_name(minor, opcode);

	if (!name || minor < 11 || (minor == 13 && is_free_threaded))
		return false;
	if (begins_with(name, "INSTRUMENTED_"))
		name += strlen("INSTRUMENTED_");
	for (size_t i = 0; i < sizeof(not_c) / sizeof(not_c[0]); i++)
		if (begins_with(name, not_c[i]))
			return false;
	return begins_with(name, "CALL") || begins_with(name, "PRECALL");
}
