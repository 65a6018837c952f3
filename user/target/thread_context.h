/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_THREAD_CONTEXT_H
#define TARGET_THREAD_CONTEXT_H

/*
 * Where threads of a process have the pointer to the context that they are in: OpenTelemetry's
 * OTEP 4947, the thread-local variable `otel_thread_ctx_v1` of the program or a library. x86-64.
 */

#include <stdint.h>
#include <sys/types.h>

#include "bpf/events.h"

/*
 * All of a row but process. 0; -ENOENT: there is no such variable, or the linker has not placed it
 * yet, -EBADMSG: it is placed in no way that is known, -ENOTSUP: not on this machine; or as
 * maps_open(); without a message of its own.
 */
int thread_context_find(pid_t pid, struct thread_context_row *out);

/* A descriptor of TLSDESC holds an offset, or where the module and the offset in it are. */
#define THREAD_CONTEXT_STATIC_MAX (1 << 24) /* bytes of a static block */

#endif
