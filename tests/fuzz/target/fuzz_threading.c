/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any memory at all: the input, repeated over the whole address space, so that every pointer leads
 * somewhere, also back. The search must end, after no more reads than it says, with a name that
 * fits.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../made_offsets.h"
#include "target/object.h"
#include "target/threading.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct memory {
	const uint8_t *bytes;
	size_t len;
	uint32_t reads;
};

static int read_memory(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = arg;

	if (len > OBJECT_READ_BYTES || ++m->reads > THREADING_READS_MAX)
		abort();
	for (size_t done = 0, n; done < len; done += n) {
		size_t at = (addr + done) % m->len;

		n = m->len - at < len - done ? m->len - at : len - done;
		memcpy((uint8_t *)buf + done, m->bytes + at, n);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct py_offsets off;
	struct memory m;
	struct threading_process p;
	struct threading_name name;
	uint64_t ident;

	if (len < 18)
		return 0;
	off = made_offsets(6 + (bytes[0] & 15) % 10, bytes[0] & 16);
	m = (struct memory){ bytes + 1, len - 1, 0 };
	p = (struct threading_process){
		.read = read_memory, .arg = &m, .runtime = 256, .off = &off, .active = bytes[1]
	};
	memcpy(&ident, bytes + 2, sizeof(ident));
	if (threading_name(&p, ident, &name))
		return 0;
	if ((name.kind != 1 && name.kind != 2 && name.kind != 4) || !name.len ||
	    name.len > sizeof(name.bytes) || name.len % name.kind)
		abort();
	return 0;
}
