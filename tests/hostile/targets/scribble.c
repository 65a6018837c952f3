/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scribble_start() starts a thread that rewrites memory of its own process and puts it back, for
 * ever. scribbles.py calls it, and compute(), through ctypes, which releases the GIL.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AT_ONCE_MAX 16
#define ARENA_BYTES (1u << 18)

struct region {
	uint64_t address, bytes;
};

/* The caller's arrays live as long as the process. */
struct scribble {
	const struct region *regions;
	uint64_t region_count, seed;
	uint8_t *arena; /* objects that are almost right, for pointers to lead to */
};

static uint64_t next_random(struct scribble *s)
{
	/* xorshift64*, Vigna 2014 */
	s->seed ^= s->seed >> 12;
	s->seed ^= s->seed << 25;
	s->seed ^= s->seed >> 27;
	return s->seed * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static const struct region *any_region(struct scribble *s)
{
	return &s->regions[next_random(s) % s->region_count];
}

static uint64_t wild_value(struct scribble *s, uint64_t old)
{
	switch (next_random(s) % 10) {
	case 0:
		return any_region(s)->address;
	case 1:
		return any_region(s)->address + next_random(s) % 128 - 64;
	case 2:
		return (uint64_t)(uintptr_t)s->arena +
		       (next_random(s) % ARENA_BYTES & ~UINT64_C(7));
	case 3:
		return next_random(s) << 16 ^ next_random(s);
	case 4:
		return UINT64_C(1) << next_random(s) % 64;
	case 5:
		return (UINT64_C(1) << next_random(s) % 64) - 1;
	case 6:
		return UINT64_C(0xffff888000000000) + next_random(s) % (1u << 30);
	case 7:
		return next_random(s) % 4096;
	case 8:
		return old + next_random(s) % 64 - 32;
	default:
		return old ^ UINT64_C(1) << next_random(s) % 64;
	}
}

/* Copies of what the regions hold, with wild words in them. */
static void fill_arena(struct scribble *s)
{
	for (int i = 0; i < 64; i++) {
		const struct region *from = any_region(s);
		uint64_t bytes = from->bytes < 512 ? from->bytes : 512;
		uint8_t *to = s->arena + (next_random(s) % (ARENA_BYTES - 512) & ~UINT64_C(7));
		uint64_t word = wild_value(s, 0);

		memcpy(to, (const void *)(uintptr_t)from->address, bytes);
		memcpy(to + (next_random(s) % 64 & ~UINT64_C(7)), &word, sizeof(word));
	}
}

static void pause_ns(long ns)
{
	struct timespec t = { 0, ns };

	nanosleep(&t, NULL);
}

/* One to sixteen words are wrong for a moment. */
static void scribble_once(struct scribble *s)
{
	static const uint64_t counts[] = { 1, 1, 1, 2, 4, AT_ONCE_MAX };
	static const long pauses_ns[] = { 1, 100000, 500000, 2000000 };
	uint64_t *places[AT_ONCE_MAX], old[AT_ONCE_MAX];
	uint64_t count = counts[next_random(s) % 6];

	for (uint64_t i = 0; i < count; i++) {
		const struct region *r = any_region(s);

		places[i] =
			(uint64_t *)(uintptr_t)(r->address + next_random(s) % (r->bytes / 8) * 8);
		old[i] = *places[i];
		*places[i] = wild_value(s, old[i]);
	}
	pause_ns(pauses_ns[next_random(s) % 4]);
	while (count--) /* from the last to the first: a place may be there twice */
		*places[count] = old[count];
}

static void *run(void *arg)
{
	struct scribble *s = arg;

	for (uint64_t round = 0;; round++) {
		if (round % 64 == 0)
			fill_arena(s);
		scribble_once(s);
		if (next_random(s) % 4 == 0)
			pause_ns(1000000); /* names are read again */
	}
	return NULL;
}

int scribble_start(const struct region *regions, uint64_t region_count, uint64_t seed);
void compute(void);

/* For ever. */
void compute(void)
{
	for (volatile uint64_t i = 0;; i++)
		;
}

/* 0: the thread runs. */
int scribble_start(const struct region *regions, uint64_t region_count, uint64_t seed)
{
	struct scribble *s = calloc(1, sizeof(*s));
	pthread_t thread;

	if (!s || !(s->arena = calloc(1, ARENA_BYTES)))
		return -1;
	s->regions = regions;
	s->region_count = region_count;
	s->seed = seed * 2 + 1;
	return pthread_create(&thread, NULL, run, s);
}
