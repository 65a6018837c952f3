/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_KERNEL_TYPES_H
#define COLLECT_KERNEL_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * The kernel's description of its own types (BTF), read where it lies. libbpf takes 7 ms to read
 * the 130,000 of them, and a half more for each type that a program asks for; here it is one pass
 * for all that is asked at once.
 */
struct kernel_types;

#define KERNEL_TYPES_PATH "/sys/kernel/btf/vmlinux"

/* -EBADMSG for what is none, -ENOMEM, or what open() and read() report; with a message. */
int kernel_types_open(const char *path, struct kernel_types **out);
void kernel_types_free(struct kernel_types *k);
DEFINE_CLEANUP(struct kernel_types *, kernel_types_free)

/* Asked for by name and kind (BTF_KIND_STRUCT, ...). */
struct kernel_type {
	const char *name;
	uint32_t kind;
	uint32_t id; /* the answer; 0: there is none, else the first */
};

void kernel_types_find(const struct kernel_types *k, struct kernel_type *wanted, size_t count);

/* How many parameters the function of this id has; -1: it is none. */
int kernel_types_params(const struct kernel_types *k, uint32_t function);

/*
 * Writes these types, and what they hold by value, to fd: types as libbpf reads them, where
 * pointers lead to void. Those of id 0 are left out.
 */
int kernel_types_write(const struct kernel_types *k, const struct kernel_type *types, size_t count,
		       int fd);

#endif
