/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_C_LIBRARY_H
#define TARGET_C_LIBRARY_H

/*
 * Where a C library has what describes a thread, struct pthread, whose address is pthread_self():
 * by that Python knows its threads, and the kernel by the thread pointer. On x86-64 the two are
 * the same. On arm64 the thread pointer is the end of struct pthread, and how large that is differs
 * by library and version: 1792 to 1856 bytes in glibc 2.31 to 2.43, 200 in musl 1.2.
 */

#include <stdbool.h>
#include <stdint.h>

#include "target/elf.h"

#define PTHREAD_BYTES_MAX 16384
#define C_LIBRARY_SYMBOL "_thread_db_sizeof_pthread" /* nptl_db/structs.def of glibc */

#ifdef __x86_64__
#define THREAD_POINTER_IS_SELF true
#else
#define THREAD_POINTER_IS_SELF false
#endif

struct c_library {
	uint16_t pthread_bytes; /* from pthread_self() to the thread pointer */
	uint16_t tid_at;        /* from pthread_self() to the thread's id, an int; 0: not known */
};

/* Is it musl, whose dynamic linker is its C library? By its name, or the one that Alpine has. */
bool c_library_is_musl(const char *path);

/*
 * What a file says: by what glibc has for debuggers (nptl_db). is_program: an interpreter within
 * it, which may be linked statically. -ENOENT: it is no C library, -EBADMSG: one whose numbers
 * cannot be; without a message.
 */
int c_library_read(const struct elf *elf, const char *path, bool is_program, struct c_library *out);

#endif
