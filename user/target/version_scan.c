/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/version_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "target/mem.h"
#include "target/offsets.h"

#define SCAN_MAX (16u << 20) /* bytes of .bss that are searched in all; 3.6 to 3.10 have 0.2 MB */
#define SCAN_BLOCK 65536
#define SCAN_BYTES (SCAN_BLOCK + 32) /* with all that matters of a text that begins at its end */

/*
 * "3.8.18 (", "3.9.0rc1+ (" at p, of len bytes: the start of sys.version. Returns its
 * PY_VERSION_HEX, 0 if it is something else.
 */
static uint32_t version_of_text(const char *p, size_t len)
{
	static const char levels[] = "abc";
	uint32_t numbers[3] = { 0 }, level = VERSION_LEVEL_FINAL, serial = 0;
	const char *end = p + len;

	for (int i = 0; i < 3; i++) {
		const char *first = p;

		for (; p < end && *p >= '0' && *p <= '9' && p - first < 3; p++)
			numbers[i] = numbers[i] * 10 + (*p - '0');
		if (p == first || numbers[i] > 255 || (i < 2 && (p == end || *p++ != '.')))
			return 0;
	}
	if (end - p > 1 && *p == 'r')
		p++;
	if (p < end && strchr(levels, *p) && *p) {
		level = 0xa + (strchr(levels, *p++) - levels);
		for (; p < end && *p >= '0' && *p <= '9' && serial < 16; p++)
			serial = serial * 10 + (*p - '0');
	}
	if (p < end && *p == '+')
		p++;
	if (end - p < 2 || p[0] != ' ' || p[1] != '(' || numbers[0] < 2 || numbers[0] > 3)
		return 0;
	return VERSION_HEX(numbers[0], numbers[1], numbers[2], level) | (serial & 0xf);
}

/* What was found so far. */
struct version_scan {
	uint32_t found; /* 0: none */
	uint64_t left;  /* bytes that may be looked at yet */
	char *block;
};

static int note_version(struct version_scan *s, uint32_t version)
{
	char a[VERSION_TEXT_BYTES], b[VERSION_TEXT_BYTES];

	if (!version || version == s->found)
		return 0;
	if (s->found) {
		version_format(s->found, a);
		version_format(version, b);
		return err_set(-EBADMSG, "unknown build of Python: its memory says both %s and %s",
			       a, b);
	}
	s->found = version;
	return 0;
}

/* The texts that begin in the first `starts` of n bytes: variables are aligned. */
static int scan_block(struct version_scan *s, size_t n, size_t starts)
{
	int r = 0;

	for (size_t p = 0; p < n && p < starts && !r; p += 8)
		if (s->block[p] == '3' || s->block[p] == '2')
			r = note_version(s, version_of_text(s->block + p, n - p));
	return r;
}

static int scan_range(struct version_scan *s, pid_t pid, uint64_t at, uint64_t end)
{
	int r = 0;

	for (; at < end && !r; at += SCAN_BLOCK) {
		size_t n = end - at < SCAN_BYTES ? end - at : SCAN_BYTES;

		r = mem_read(pid, at, s->block, n);
		if (r == -EFAULT) {
			err_clear(); /* not mapped: another segment then */
			return 0;
		}
		if (!r)
			r = scan_block(s, n, SCAN_BLOCK);
	}
	return r;
}

int version_scan(pid_t pid, const struct elf *elf, uint64_t bias, uint32_t *version)
{
	_cleanup_(freep) char *block = malloc(SCAN_BYTES);
	struct version_scan s = { .left = SCAN_MAX, .block = block };
	int r = block ? 0 : -ENOMEM;

	for (size_t i = 0; i < elf->segments_len && !r; i++) {
		const Elf64_Phdr *p = &elf->segments[i];
		uint64_t at = (p->p_vaddr + p->p_filesz + 7) & -8ull, end = p->p_vaddr + p->p_memsz;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W) || end < at)
			continue;
		if (end - at > s.left)
			end = at + s.left;
		s.left -= end - at;
		r = scan_range(&s, pid, bias + at, bias + end);
	}
	if (r < 0)
		return r;
	if (!s.found)
		return err_set(-EAGAIN, "Python is still starting: version unknown");
	*version = s.found;
	return 0;
}
