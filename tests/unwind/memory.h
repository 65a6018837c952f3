/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNWIND_MEMORY_H
#define UNWIND_MEMORY_H

/*
 * A target's address space for the host: pages that are there, pages that are swapped out (they
 * fault) and nothing elsewhere. read_memory() of bpf/read.h reads the memory chosen by
 * memory_use().
 */

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#define PAGE_BYTES 4096u

struct memory;

/* Fills in one page at first touch. Returns 0, or negative: there is none. */
typedef int (*memory_source)(void *ctx, __u64 page_addr, __u8 *page);

struct memory *memory_new(void); /* never NULL: a test without memory aborts */
void memory_free(struct memory *m);
void memory_clear(struct memory *m);
void memory_set_source(struct memory *m, memory_source source, void *ctx);

/* Only these bits of an address count, so that any pointer can lead somewhere. Default: all. */
void memory_fold(struct memory *m, __u64 mask);

/* What the unwinder reads from now on. */
void memory_use(struct memory *m);

/*
 * Writes, making pages present. Reading back the same way is for tests: it never faults, absent
 * pages are zero.
 */
void memory_write(struct memory *m, __u64 addr, const void *bytes, size_t len);
void memory_read(const struct memory *m, __u64 addr, void *bytes, size_t len);
void memory_write_u64(struct memory *m, __u64 addr, __u64 value);
void memory_write_u32(struct memory *m, __u64 addr, __u32 value);
void memory_write_u8(struct memory *m, __u64 addr, __u8 value);
__u64 memory_u64(const struct memory *m, __u64 addr);

bool memory_is_present(const struct memory *m, __u64 addr);

/* The pages that hold any of [addr, addr + len). */
void memory_remove(struct memory *m, __u64 addr, size_t len);
void memory_swap_out(struct memory *m, __u64 addr, size_t len);
void memory_swap_in(struct memory *m, __u64 addr, size_t len);

/* As a thread that waits for its pages: those of the first and of the last byte are there then.
 * False: there is no such memory. Of the memory in use. */
bool memory_read_in(__u64 addr, __u32 bytes);

/* Reads that read_memory() was asked for since memory_use(). */
size_t memory_reads(const struct memory *m);

/* Whether any of them lay in part on the page of addr. */
bool memory_is_touched(const struct memory *m, __u64 addr);

/* Addresses of all pages that were read; returns how many there are, at most max are written. */
size_t memory_touched(const struct memory *m, __u64 *pages, size_t max);

/*
 * Where a read may land: each read into the given object must stay inside one of its
 * members, or the test aborts. ASan sees the whole object only.
 */
struct memory_room {
	const char *name;
	const void *start;
	size_t bytes;
};

void memory_guard(const struct memory_room *rooms, size_t count, const void *object, size_t bytes);

#endif
