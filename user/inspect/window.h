/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_WINDOW_H
#define INSPECT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WINDOW_RANGES 128
#define WINDOW_BYTES 65536
#define WINDOW_PAGES 16
#define WINDOW_PAGE_BYTES 4096

/*
 * Reads of a process's memory. Threads run the same code, so that what is read for one lies mostly
 * where it did for the one before: between window_begin() and window_end() that is read anew, and
 * all at once, as it is calls that take time and not bytes; of what lies elsewhere the first pages
 * are read whole. What is returned was never read before window_begin(). Outside of these each read
 * is a call of its own.
 */
struct window {
	pid_t door; /* a living thread of the process */
	bool is_open;
	struct window_range {
		uint64_t addr;
		uint32_t len;
		uint32_t at; /* in bytes[]; only of ranges[] up to valid */
	} ranges[WINDOW_RANGES], next[WINDOW_RANGES];
	size_t count, valid, next_count;
	uint32_t next_bytes;
	uint8_t slots[2 * WINDOW_RANGES]; /* index + 1 of a range, by its address; 0: free */
	uint8_t bytes[WINDOW_BYTES];
	struct window_page {
		uint64_t addr;
		uint8_t bytes[WINDOW_PAGE_BYTES];
	} pages[WINDOW_PAGES];
	size_t page_count;
};

void window_begin(struct window *w);
void window_end(struct window *w);

/* len bytes at addr. 0 or a negative errno, without a message. arg: the window. */
int window_read(void *arg, uint64_t addr, void *buf, size_t len);

#endif
