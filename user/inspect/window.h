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
 * where it did for those before: between window_begin() and window_end() what two in a row have
 * read is read anew, and all at once, as it is calls that take time and not bytes; of what lies
 * elsewhere the first pages are read whole. What is returned was never read before window_begin().
 * Outside of these each read is a call of its own.
 */
struct window_ranges {
	struct window_range {
		uint64_t addr;
		uint32_t len;
		uint32_t at;    /* in bytes[]; WINDOW_NOT_READ */
		uint32_t times; /* windows in a row that have read it */
	} items[WINDOW_RANGES];
	size_t count;
	uint8_t slots[2 * WINDOW_RANGES]; /* index + 1 of an item, by its address; 0: free */
};
#define WINDOW_NOT_READ UINT32_MAX

struct window {
	pid_t door; /* a living thread of the process */
	bool is_open;
	struct window_ranges before, now; /* what the last window has read, and this one */
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
