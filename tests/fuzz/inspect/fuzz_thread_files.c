/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text of /proc/PID/task/TID/status, syscall, sched and stat: the name in it is the target's. */
#include <stdlib.h>
#include <string.h>

#include "inspect/thread_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes;
	struct thread_status status;
	struct thread_call call;
	uint64_t ns;
	unsigned int cpu;

	if (!thread_status_parse(text, len, &status)) {
		require(memchr(status.comm, '\0', sizeof(status.comm)) != NULL);
		require(status.nspid >= 0 && status.nspid <= PROC_PIDS_MAX);
	}
	if (!thread_call_parse(text, len, &call))
		require(call.is_running || call.nr >= -1);
	if (!thread_sched_parse(text, len, &ns))
		require(ns <= UINT64_MAX / 2 + 1000000);
	if (!thread_cpu_parse(text, len, &cpu))
		require(cpu <= INT32_MAX);
	return 0;
}
