/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any memory at all, as in fuzz_threading.c, whose inputs these are: the name of a thread is UTF-8
 * of bounded length, the second time, with what the first call remembered, too.
 */
#define mem_read mem_read_of_input
#include "collect/thread_name.c"

#include <stdlib.h>
#include <string.h>

#include "../../made_offsets.h"
#include "base/utf8.h"

#define HEAD 2

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const uint8_t *memory;
static size_t memory_len;

/* The input, repeated over the whole address space. */
int mem_read_of_input(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	(void)pid;
	for (size_t done = 0, n; done < len; done += n) {
		size_t at = (addr + done) % memory_len;

		n = memory_len - at < len - done ? memory_len - at : len - done;
		memcpy((uint8_t *)buf + done, memory + at, n);
	}
	return 0;
}

static void check_name(const char name[THREAD_NAME_BYTES])
{
	size_t len = strnlen(name, THREAD_NAME_BYTES);
	uint32_t code_point;

	if (len == THREAD_NAME_BYTES)
		abort();
	for (size_t at = 0, step; at < len; at += step) {
		step = utf8_decode(name + at, len - at, &code_point);
		if (code_point == UTF8_REPLACEMENT && step != 3)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct thread_names *names;

	if (len < HEAD + sizeof(uint64_t))
		return 0;
	names = calloc(1, sizeof(*names) + sizeof(names->items[0]));
	if (!names)
		abort();
	*names =
		(struct thread_names){ .pid = getpid(),
				       .runtime = 256,
				       .off = made_offsets(6 + (bytes[0] & 15) % 10, bytes[0] & 16),
				       .active = bytes[1],
				       .count = 1 };
	names->items[0].place.tid = gettid();
	memory = bytes + 1;
	memory_len = len - 1;
	memcpy(&names->items[0].place.pointer, bytes + HEAD, sizeof(uint64_t));
	for (int i = 0; i < 2; i++)
		if (!thread_names_read(names) && !names->items[0].r)
			check_name(names->items[0].name);
	free(names);
	return 0;
}
