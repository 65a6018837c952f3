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
	char name[THREAD_NAME_BYTES];
	struct py_offsets off;
	struct thread_place thread = {
		.pid = getpid(), .tid = gettid(), .runtime = 256, .off = &off
	};
	uint64_t active;

	if (len < HEAD + sizeof(thread.pointer))
		return 0;
	off = made_offsets(6 + (bytes[0] & 15) % 10, bytes[0] & 16);
	active = bytes[1];
	memory = bytes + 1;
	memory_len = len - 1;
	memcpy(&thread.pointer, bytes + HEAD, sizeof(thread.pointer));
	for (int i = 0; i < 2; i++)
		if (!thread_name_read(&thread, &active, name))
			check_name(name);
	return 0;
}
