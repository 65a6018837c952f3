/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "inspect/window.h"

#include <string.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/hash.h"
#include "target/mem.h"

#define RANGE_BYTES_MAX 4096
#define SLOTS (2 * WINDOW_RANGES)

_Static_assert(WINDOW_RANGES < 256, "slots are bytes");

/* The slot of a range, or the free one where it belongs. */
static uint8_t *slot_of(struct window *w, const struct window_range *ranges, uint64_t addr,
			size_t len)
{
	size_t i = hash_u64(addr) % SLOTS;

	while (w->slots[i] &&
	       (ranges[w->slots[i] - 1].addr != addr || ranges[w->slots[i] - 1].len != len))
		i = (i + 1) % SLOTS;
	return &w->slots[i];
}

/* Of ranges that lie behind each other in bytes[]; returns how many there are all of. */
static size_t read_ranges(struct window *w)
{
	struct iovec remote[WINDOW_RANGES];
	struct iovec local = { .iov_base = w->bytes };
	size_t whole = 0, total = 0;
	ssize_t n;

	for (size_t i = 0; i < w->count; i++) {
		remote[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)w->ranges[i].addr,
					    .iov_len = w->ranges[i].len };
		local.iov_len += w->ranges[i].len;
	}
	n = w->count ? process_vm_readv(w->door, &local, 1, remote, w->count, 0) : 0;
	while (n > 0 && whole < w->count && total + w->ranges[whole].len <= (size_t)n)
		total += w->ranges[whole++].len;
	return whole;
}

void window_begin(struct window *w)
{
	memcpy(w->ranges, w->next, w->next_count * sizeof(*w->ranges));
	w->count = w->next_count;
	w->next_count = 0;
	w->next_bytes = 0;
	w->page_count = 0;
	memset(w->slots, 0, sizeof(w->slots));
	w->valid = read_ranges(w);
	for (size_t i = 0; i < w->valid; i++)
		*slot_of(w, w->ranges, w->ranges[i].addr, w->ranges[i].len) = (uint8_t)(i + 1);
	w->is_open = true;
}

void window_end(struct window *w)
{
	w->is_open = false;
}

/* The next window begins with it. */
static void note(struct window *w, uint64_t addr, size_t len)
{
	if (w->next_count == WINDOW_RANGES || len > RANGE_BYTES_MAX ||
	    len > WINDOW_BYTES - w->next_bytes)
		return;
	w->next[w->next_count++] =
		(struct window_range){ .addr = addr, .len = (uint32_t)len, .at = w->next_bytes };
	w->next_bytes += (uint32_t)len;
}

static int read_alone(const struct window *w, uint64_t addr, void *buf, size_t len)
{
	int r = mem_read(w->door, addr, buf, len);

	if (r < 0)
		err_clear(); /* what is torn or gone is as good as not there */
	return r;
}

/* The page of an address, read now if it was not. NULL: there is none, or no room for it. */
static const struct window_page *page_of(struct window *w, uint64_t addr)
{
	struct window_page *page = &w->pages[w->page_count];

	addr &= ~(uint64_t)(WINDOW_PAGE_BYTES - 1);
	for (size_t i = 0; i < w->page_count; i++)
		if (w->pages[i].addr == addr)
			return &w->pages[i];
	if (w->page_count == WINDOW_PAGES ||
	    read_alone(w, addr, page->bytes, sizeof(page->bytes)) < 0)
		return NULL;
	page->addr = addr;
	w->page_count++;
	return page;
}

static int read_new(struct window *w, uint64_t addr, void *buf, size_t len)
{
	const size_t at = addr % WINDOW_PAGE_BYTES;
	const struct window_page *page =
		w->is_open && len <= WINDOW_PAGE_BYTES - at ? page_of(w, addr) : NULL;

	if (!page)
		return read_alone(w, addr, buf, len);
	memcpy(buf, page->bytes + at, len);
	return 0;
}

int window_read(void *arg, uint64_t addr, void *buf, size_t len)
{
	struct window *w = arg;
	uint8_t slot = w->is_open ? *slot_of(w, w->ranges, addr, len) : 0;
	int r = 0;

	if (slot)
		memcpy(buf, w->bytes + w->ranges[slot - 1].at, len);
	else
		r = read_new(w, addr, buf, len);
	if (w->is_open && !r)
		note(w, addr, len);
	return r;
}
