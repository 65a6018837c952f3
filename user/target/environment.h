/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_ENVIRONMENT_H
#define TARGET_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/strbuf.h"

/*
 * What a program's speed depends on beside its code: the machine's CPUs and how their frequency is
 * chosen, the interpreter's build, variables it was started with. Each function appends a text, or
 * nothing where it cannot be told, which is no error. 0 or -ENOMEM.
 */
#define ENVIRONMENT_BLOCK_MAX (1u << 20) /* bytes of /proc/PID/environ: more is not looked at */
#define ENVIRONMENT_VALUE_MAX 64         /* bytes of a value that are kept */

/* "Intel(R) Xeon(R) Processor"; of several kinds each once, joined by ", ". */
int environment_put_cpu(struct strbuf *out);

/* "performance", the same. Virtual machines have none. */
int environment_put_governor(struct strbuf *out);

/*
 * PYTHONHASHSEED and PYTHONMALLOC of a process, as it was started: "random" and "default" where it
 * has none. Nothing if its variables cannot be read.
 */
int environment_put_python(pid_t pid, struct strbuf *hash_seed, struct strbuf *allocator);

/* The parts that do not ask the system: of the text of /proc/cpuinfo, and of a block of variables,
 * each ended by a NUL. find(): false: it is not there; *value is borrowed, *len bytes. */
int environment_cpu_of(const char *cpuinfo, size_t len, struct strbuf *out);
bool environment_find(const char *block, size_t block_len, const char *name, const char **value,
		      size_t *len);

#endif
