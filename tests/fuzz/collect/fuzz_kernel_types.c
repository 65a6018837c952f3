/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes are a kernel's types: found, asked for their parameters, and written again. */
#include <linux/btf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/file.h"
#include "collect/kernel_types.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

static struct kernel_types *open_types(int fd)
{
	struct kernel_types *k = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	kernel_types_open(path, &k);
	return k;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct kernel_type wanted[] = {
		{ "outer", BTF_KIND_STRUCT, 0 },    { "other", BTF_KIND_STRUCT, 0 },
		{ "outer", BTF_KIND_UNION, 0 },     { "call", BTF_KIND_FUNC, 0 },
		{ "inner_t", BTF_KIND_TYPEDEF, 0 }, { "", BTF_KIND_STRUCT, 0 },
	};
	const size_t count = sizeof(wanted) / sizeof(wanted[0]);
	_cleanup_(closep) int fd = memfd_create("types", MFD_CLOEXEC),
			      copy = memfd_create("copy", MFD_CLOEXEC);
	_cleanup_(kernel_types_freep) struct kernel_types *k = NULL, *again = NULL;

	require(fd >= 0 && copy >= 0 && file_write(fd, bytes, len) == 0);
	k = open_types(fd);
	if (!k)
		return 0;
	kernel_types_find(k, wanted, count);
	for (size_t i = 0; i < count; i++)
		require(kernel_types_params(k, wanted[i].id) >= -1);
	require(kernel_types_write(k, wanted, count, copy) == 0);
	again = open_types(copy);
	require(again != NULL);
	kernel_types_find(again, wanted, 1);
	return 0;
}
