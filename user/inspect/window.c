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
static uint8_t *slot_of(struct window_ranges *ranges, uint64_t addr, size_t len)
{
	size_t i = hash_u64(addr) % SLOTS;

	for (; ranges->slots[i]; i = (i + 1) % SLOTS) {
		const struct window_range *range = &ranges->items[ranges->slots[i] - 1];

		if (range->addr == addr && range->len == len)
			break;
	}
	return &ranges->slots[i];
}

static struct window_range *range_find(struct window_ranges *ranges, uint64_t addr, size_t len)
{
	uint8_t slot = *slot_of(ranges, addr, len);

	return slot ? &ranges->items[slot - 1] : NULL;
}

/* Reads what is likely to be asked for, to places behind each other in bytes[]. */
static void read_ahead(struct window *w)
{
	struct iovec remote[WINDOW_RANGES], local = { .iov_base = w->bytes };
	size_t count = 0;
	ssize_t n;

	for (size_t i = 0; i < w->before.count; i++) {
		struct window_range *range = &w->before.items[i];

		range->at = WINDOW_NOT_READ;
		if (range->times < 2 || range->len > sizeof(w->bytes) - local.iov_len)
			continue;
		range->at = (uint32_t)local.iov_len;
		local.iov_len += range->len;
		remote[count++] = (struct iovec){ .iov_base = (void *)(uintptr_t)range->addr,
						  .iov_len = range->len };
	}
	/* It ends at the first that cannot be read. */
	n = count ? process_vm_readv(w->door, &local, 1, remote, count, 0) : 0;
	for (size_t i = 0; i < w->before.count; i++) {
		struct window_range *range = &w->before.items[i];

		if (range->at != WINDOW_NOT_READ && (n < 0 || range->at + range->len > (size_t)n))
			range->at = WINDOW_NOT_READ;
	}
}

void window_begin(struct window *w)
{
	w->before = w->now;
	w->now.count = 0;
	memset(w->now.slots, 0, sizeof(w->now.slots));
	w->page_count = 0;
	read_ahead(w);
	w->is_open = true;
}

void window_end(struct window *w)
{
	w->is_open = false;
}

static void note(struct window *w, const struct window_range *before, uint64_t addr, size_t len)
{
	uint8_t *slot = slot_of(&w->now, addr, len);

	if (*slot || w->now.count == WINDOW_RANGES || len > RANGE_BYTES_MAX)
		return;
	w->now.items[w->now.count++] = (struct window_range){
		.addr = addr, .len = (uint32_t)len, .times = before ? before->times + 1 : 1
	};
	*slot = (uint8_t)w->now.count;
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
	const struct window_range *range = w->is_open ? range_find(&w->before, addr, len) : NULL;
	int r = 0;

	if (range && range->at != WINDOW_NOT_READ)
		memcpy(buf, w->bytes + range->at, len);
	else
		r = read_new(w, addr, buf, len);
	if (w->is_open && !r)
		note(w, range, addr, len);
	return r;
}
