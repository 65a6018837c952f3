/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The start of anything that claims to be a _PyRuntime. What is accepted must be safe to use. */
#include <stdint.h>
#include <stdlib.h>

#include "target/debug_offsets.h"
#include "target/offsets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct py_offsets off;

	/* The limits are those of bpf/python.h. */
	if (!debug_offsets_parse(bytes, len, &off) &&
	    (offsets_check(&off) || off.frame_size > 256 || off.code_size > 256 ||
	     off.tstate_thread_id > 504 || off.frame_owner >= off.frame_size))
		abort();
	return 0;
}
