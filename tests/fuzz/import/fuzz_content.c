/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes are a file that may be packed. What is read of it in pieces, forward, is what is read
 * of it backward; the size is that of what can be read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "import/content.h"

#define READ_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(int fact)
{
	if (!fact)
		abort();
}

/*
 * A decoder may see what is damaged behind the bytes that it was asked for, or not, by how they are
 * cut: where there is more than `whole` a part of it may be refused.
 */
static void check_places(struct content *c, const uint8_t *whole, size_t len)
{
	uint8_t part[64];
	ssize_t n;

	for (size_t at = len; at > 0; at -= at < 977 ? at : 977) {
		size_t start = at > sizeof(part) ? at - sizeof(part) : 0;

		n = content_pread(c, part, at - start, start);
		if (n < 0 && len == READ_MAX)
			return;
		require(n == (ssize_t)(at - start));
		require(!memcmp(part, whole + start, at - start));
		if (len > 65536) /* each begins anew */
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	_cleanup_(closep) int fd = memfd_create("content", MFD_CLOEXEC);
	_cleanup_(content_freep) struct content *c = NULL;
	static uint8_t whole[READ_MAX];
	uint64_t size;
	ssize_t n;

	require(fd >= 0 && file_write(fd, bytes, len) == 0);
	require(content_open(fd, &c) == 0);
	n = content_pread(c, whole, sizeof(whole), 0);
	if (n < 0)
		return 0;
	require(content_is_packed(c) || (size_t)n == (len < READ_MAX ? len : READ_MAX));
	check_places(c, whole, (size_t)n);
	if ((size_t)n < READ_MAX)
		require(content_size(c, &size) == 0 && size == (uint64_t)n);
	return 0;
}
