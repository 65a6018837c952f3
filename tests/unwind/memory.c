/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwinder.h"

#define EFAULT_RESULT (-14)

struct page {
	__u64 number; /* address / PAGE_BYTES */
	__u8 *bytes;  /* NULL: a hole that the source does not fill either */
	bool is_swapped;
	bool is_touched;
};

struct memory {
	struct page *pages; /* open addressing, linear probing; never deleted from */
	size_t slots, used;
	size_t reads;
	__u64 mask; /* of addresses */
	memory_source source;
	void *source_ctx;
};

static struct memory *current;

static struct {
	const struct memory_room *rooms;
	size_t count;
	const __u8 *object;
	size_t bytes;
} guard;

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		abort();
	return p;
}

struct memory *memory_new(void)
{
	struct memory *m = allocate(1, sizeof(*m));

	m->slots = 256;
	m->mask = UINT64_MAX;
	m->pages = allocate(m->slots, sizeof(*m->pages));
	for (size_t i = 0; i < m->slots; i++)
		m->pages[i].number = UINT64_MAX;
	return m;
}

void memory_clear(struct memory *m)
{
	for (size_t i = 0; i < m->slots; i++) {
		free(m->pages[i].bytes);
		m->pages[i] = (struct page){ .number = UINT64_MAX };
	}
	m->used = 0;
	m->reads = 0;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	if (current == m)
		current = NULL;
	memory_clear(m);
	free(m->pages);
	free(m);
}

void memory_set_source(struct memory *m, memory_source source, void *ctx)
{
	m->source = source;
	m->source_ctx = ctx;
}

void memory_fold(struct memory *m, __u64 mask)
{
	m->mask = mask;
}

void memory_use(struct memory *m)
{
	current = m;
	m->reads = 0;
	for (size_t i = 0; i < m->slots; i++)
		m->pages[i].is_touched = false;
}

static struct page *page_slot(const struct memory *m, __u64 number)
{
	size_t i = (number * 0x9e3779b97f4a7c15ULL >> 20) & (m->slots - 1);

	while (m->pages[i].number != number && m->pages[i].number != UINT64_MAX)
		i = (i + 1) & (m->slots - 1);
	return &m->pages[i];
}

/* The page, known from now on; it may be a hole. */
static struct page *page_get(struct memory *m, __u64 number)
{
	struct page *p = page_slot(m, number), *old;
	size_t slots = m->slots;

	if (p->number == number)
		return p;
	if (2 * m->used >= slots) {
		old = m->pages;
		m->slots *= 2;
		m->pages = allocate(m->slots, sizeof(*m->pages));
		for (size_t i = 0; i < m->slots; i++)
			m->pages[i].number = UINT64_MAX;
		for (size_t i = 0; i < slots; i++)
			if (old[i].number != UINT64_MAX)
				*page_slot(m, old[i].number) = old[i];
		free(old);
		p = page_slot(m, number);
	}
	p->number = number;
	m->used++;
	return p;
}

static struct page *page_present(struct memory *m, __u64 number)
{
	struct page *p = page_get(m, number);

	if (!p->bytes)
		p->bytes = allocate(1, PAGE_BYTES);
	return p;
}

void memory_write(struct memory *m, __u64 addr, const void *bytes, size_t len)
{
	const __u8 *from = bytes;

	while (len) {
		size_t at = addr % PAGE_BYTES, n = PAGE_BYTES - at < len ? PAGE_BYTES - at : len;

		memcpy(page_present(m, addr / PAGE_BYTES)->bytes + at, from, n);
		addr += n;
		from += n;
		len -= n;
	}
}

void memory_read(const struct memory *m, __u64 addr, void *bytes, size_t len)
{
	__u8 *to = bytes;

	for (size_t i = 0; i < len; i++, addr++) {
		const struct page *p = page_slot(m, addr / PAGE_BYTES);

		to[i] = p->number != UINT64_MAX && p->bytes ? p->bytes[addr % PAGE_BYTES] : 0;
	}
}

void memory_write_u64(struct memory *m, __u64 addr, __u64 value)
{
	memory_write(m, addr, &value, sizeof(value));
}

void memory_write_u32(struct memory *m, __u64 addr, __u32 value)
{
	memory_write(m, addr, &value, sizeof(value));
}

void memory_write_u8(struct memory *m, __u64 addr, __u8 value)
{
	memory_write(m, addr, &value, sizeof(value));
}

__u64 memory_u64(const struct memory *m, __u64 addr)
{
	__u64 value;

	memory_read(m, addr, &value, sizeof(value));
	return value;
}

bool memory_is_present(const struct memory *m, __u64 addr)
{
	const struct page *p = page_slot(m, addr / PAGE_BYTES);

	return p->number != UINT64_MAX && p->bytes;
}

void memory_remove(struct memory *m, __u64 addr, size_t len)
{
	for (__u64 n = addr / PAGE_BYTES; len && n <= (addr + len - 1) / PAGE_BYTES; n++) {
		struct page *p = page_get(m, n);

		free(p->bytes);
		p->bytes = NULL;
	}
}

void memory_swap_out(struct memory *m, __u64 addr, size_t len)
{
	for (__u64 n = addr / PAGE_BYTES; len && n <= (addr + len - 1) / PAGE_BYTES; n++)
		page_get(m, n)->is_swapped = true;
}

void memory_swap_in(struct memory *m, __u64 addr, size_t len)
{
	for (__u64 n = addr / PAGE_BYTES; len && n <= (addr + len - 1) / PAGE_BYTES; n++)
		page_get(m, n)->is_swapped = false;
}

size_t memory_reads(const struct memory *m)
{
	return m->reads;
}

bool memory_is_touched(const struct memory *m, __u64 addr)
{
	const struct page *p = page_slot(m, addr / PAGE_BYTES);

	return p->number != UINT64_MAX && p->is_touched;
}

size_t memory_touched(const struct memory *m, __u64 *pages, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < m->slots; i++) {
		if (m->pages[i].number == UINT64_MAX || !m->pages[i].is_touched)
			continue;
		if (count < max)
			pages[count] = m->pages[i].number * PAGE_BYTES;
		count++;
	}
	return count;
}

void memory_guard(const struct memory_room *rooms, size_t count, const void *object, size_t bytes)
{
	guard.rooms = rooms;
	guard.count = count;
	guard.object = object;
	guard.bytes = bytes;
}

static void check_room(const __u8 *dst, size_t size)
{
	if (!guard.object || dst < guard.object || dst >= guard.object + guard.bytes)
		return;
	for (size_t i = 0; i < guard.count; i++) {
		const __u8 *start = guard.rooms[i].start;

		if (dst >= start && dst + size <= start + guard.rooms[i].bytes)
			return;
	}
	fprintf(stderr, "read_memory: %zu bytes at %td of the work space fit no member of it\n",
		size, dst - guard.object);
	abort();
}

static const __u8 *page_read(struct memory *m, __u64 number)
{
	struct page *p = page_slot(m, number);
	__u8 bytes[PAGE_BYTES];

	if (p->number == UINT64_MAX) {
		if (!m->source || m->source(m->source_ctx, number * PAGE_BYTES, bytes))
			return NULL;
		p = page_present(m, number);
		memcpy(p->bytes, bytes, PAGE_BYTES);
	}
	p->is_touched = true;
	return p->is_swapped ? NULL : p->bytes;
}

int read_memory(void *dst, __u32 size, __u64 addr)
{
	__u8 *to = dst;
	__u32 left = size;

	check_room(dst, size);
	current->reads++;
	while (left) {
		__u64 folded = addr & current->mask;
		__u32 at = addr % PAGE_BYTES, n = PAGE_BYTES - at < left ? PAGE_BYTES - at : left;
		const __u8 *from = folded >> 47 ? NULL : page_read(current, folded / PAGE_BYTES);

		if (!from) {
			memset(dst, 0, size);
			return EFAULT_RESULT;
		}
		memcpy(to, from + at, n);
		addr += n;
		to += n;
		left -= n;
	}
	return 0;
}

/* The page of one byte. */
static bool read_in_byte(__u64 addr)
{
	__u64 folded = addr & current->mask;
	struct page *p;

	if (folded >> 47)
		return false;
	if (!page_read(current, folded / PAGE_BYTES) && !memory_is_present(current, folded))
		return false;
	p = page_slot(current, folded / PAGE_BYTES);
	p->is_swapped = false;
	return true;
}

bool memory_read_in(__u64 addr, __u32 bytes)
{
	return read_in_byte(addr) && (!bytes || read_in_byte(addr + bytes - 1));
}
