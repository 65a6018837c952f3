/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/py_spy.h"

#include <string.h>

bool py_spy_process(struct span text, struct span *name, uint32_t *pid)
{
	struct span digits;
	uint64_t number;

	if (!span_take_prefix(&text, "process ") || !span_take_until(&text, ":\"", &digits) ||
	    !span_ends_in(text, "\"") || !span_number(digits, UINT32_MAX, &number))
		return false;
	*name = (struct span){ text.bytes, text.len - 1 };
	*pid = (uint32_t)number;
	return true;
}

bool py_spy_thread(struct span text, struct span *name, uint32_t *tid)
{
	struct span whole = text, id;
	uint64_t number = 0;

	if (!span_take_prefix(&text, "thread (") || !span_take_until(&text, "): ", &id))
		return false;
	*name = text;
	if (!span_number(id, UINT32_MAX, &number)) {
		if (!span_take_prefix(&id, "0x"))
			return false;
		*name = (struct span){ whole.bytes + strlen("thread "),
				       whole.len - strlen("thread ") };
	}
	*tid = (uint32_t)number;
	return true;
}
