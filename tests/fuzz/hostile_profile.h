/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_FUZZ_HOSTILE_PROFILE_H
#define TESTS_FUZZ_HOSTILE_PROFILE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

/*
 * A profile as bytes will have it: anything that a reader may hand out (fuzz_store requires that of
 * it), however odd. Ids are in range, numbers and texts are not ours.
 */
struct hostile {
	const uint8_t *at, *end;
};

/* Says which: an optimised build keeps one abort() for all. */
#define require(fact)                                                              \
	do {                                                                       \
		if (!(fact)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact); \
			abort();                                                   \
		}                                                                  \
	} while (0)

/* Little-endian; zeros beyond the end. */
static inline uint64_t hostile_number(struct hostile *h, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes && h->at < h->end; i++)
		v |= (uint64_t)*h->at++ << 8 * i;
	return v;
}

/* 0 .. count - 1; count > 0. */
static inline uint32_t hostile_pick(struct hostile *h, uint32_t count)
{
	return (uint32_t)(hostile_number(h, 2) % count);
}

static inline uint32_t hostile_string(struct hostile *h, const struct profile *p)
{
	return hostile_pick(h, strtab_count(p->strings));
}

static inline void hostile_add_string(struct hostile *h, struct profile *p)
{
	size_t len = hostile_number(h, 1), left = (size_t)(h->end - h->at);
	uint32_t id;

	len = len < left ? len : left;
	require(strtab_intern(p->strings, (const char *)h->at, len, &id) == 0);
	h->at += len;
}

static inline void hostile_add_frame(struct hostile *h, struct profile *p)
{
	struct frame f = { .name = hostile_string(h, p), .file = hostile_string(h, p) };
	uint32_t id;

	f.line = (uint32_t)hostile_number(h, 4);
	f.first_line = (uint32_t)hostile_number(h, 4);
	f.kind = (uint8_t)(hostile_number(h, 1) % FRAME_TYPE_COUNT);
	f.flags = (uint8_t)hostile_number(h, 1);
	require(frametab_intern(p->frames, &f, &id) == 0);
}

/* Many levels of it where the bytes say so: recursion. */
static inline void hostile_add_stack(struct hostile *h, struct profile *p)
{
	uint32_t stack = hostile_pick(h, stacktab_count(p->stacks)), frame;

	if (!frametab_count(p->frames))
		return;
	frame = hostile_pick(h, frametab_count(p->frames));
	for (size_t levels = 1 + hostile_number(h, 1); levels; levels--)
		require(stacktab_intern(p->stacks, stack, frame, &stack) == 0);
}

static inline void hostile_add_process(struct hostile *h, struct profile *p)
{
	struct process process = {
		.pid = (uint32_t)hostile_number(h, 4),
		.ns_pid = (uint32_t)hostile_number(h, 1),
		.ppid = (uint32_t)hostile_number(h, 1),
		.name = hostile_string(h, p),
		.command_line = hostile_string(h, p),
		.python_version = hostile_string(h, p),
		.implementation = hostile_string(h, p),
		.executable = hostile_string(h, p),
		.container = hostile_string(h, p),
		.pod_uid = hostile_string(h, p),
		.pod_name = hostile_string(h, p),
		.pod_namespace = hostile_string(h, p),
		.start_ns = hostile_number(h, 2),
	};
	uint32_t index;

	require(profile_add_process(p, &process, &index) == 0);
}

static inline void hostile_add_thread(struct hostile *h, struct profile *p)
{
	struct thread t = { 0 };
	uint32_t index;

	if (!p->processes.len)
		return;
	t.process = hostile_pick(h, (uint32_t)p->processes.len);
	t.tid = (uint32_t)hostile_number(h, 4);
	t.name = hostile_string(h, p);
	require(profile_add_thread(p, &t, &index) == 0);
}

static inline void hostile_add_sample(struct hostile *h, struct profile *p)
{
	struct sample s = { 0 };

	if (!p->threads.len)
		return;
	s.time_ns = hostile_number(h, 8) & INT64_MAX;
	s.thread = hostile_pick(h, (uint32_t)p->threads.len);
	s.stack = hostile_pick(h, stacktab_count(p->stacks));
	s.value = (uint32_t)hostile_number(h, 4);
	s.value += !s.value;
	s.cpu = (uint16_t)hostile_number(h, 2);
	s.flags = (uint16_t)hostile_number(h, 2);
	s.opcode = hostile_string(h, p);
	s.gil = (uint16_t)hostile_number(h, 2);
	require(profile_add_sample(p, &s) == 0);
}

static inline void hostile_set_counter(struct hostile *h, struct profile *p)
{
	static const char *const known[] = { "ring_full", "not_delivered", "ticks", "expected" };
	uint32_t which = hostile_pick(h, 5);
	const char *name = which < 4 ? known[which] : strtab_get(p->strings, hostile_string(h, p));

	(void)!profile_set_counter(p, name, hostile_number(h, 8)); /* perhaps too long a name */
}

/* Units of work: finite, not below 0. */
static inline double hostile_work(struct hostile *h)
{
	uint64_t bits = hostile_number(h, 8);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return isfinite(v) && v > 0 ? v : 0;
}

static inline void hostile_set_metadata(struct hostile *h, struct profile *p)
{
	char **const texts[] = {
		&profile_recording(p)->host,    &profile_recording(p)->kernel,
		&profile_recording(p)->version, &profile_recording(p)->command,
		&profile_recording(p)->mode,    &profile_recording(p)->event,
		&profile_recording(p)->target,  &profile_recording(p)->source,
	};

	profile_recording(p)->start_realtime_ns = hostile_number(h, 8);
	profile_recording(p)->duration_ns = hostile_number(h, 8);
	profile_recording(p)->rate_hz = hostile_number(h, 8);
	profile_recording(p)->interval_ns = hostile_number(h, 8);
	profile_recording(p)->cpus = hostile_number(h, 1);
	profile_recording(p)->has_ended = hostile_number(h, 1) & 1;
	profile_recording(p)->is_whole = hostile_number(h, 1) & 1;
	profile_recording(p)->is_summed = hostile_number(h, 1) & 1;
	profile_recording(p)->work = hostile_work(h);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		require(recording_set_text(texts[i],
					   strtab_get(p->strings, hostile_string(h, p))) == 0);
}

/* What the bytes add to p, up to the mark that ends a run (true) or their own end. */
static inline bool hostile_fill(struct hostile *h, struct profile *p)
{
	static void (*const adders[])(struct hostile *, struct profile *) = {
		hostile_add_string, hostile_add_frame,  hostile_add_stack,   hostile_add_process,
		hostile_add_thread, hostile_add_sample, hostile_set_counter, hostile_set_metadata,
	};
	const size_t count = sizeof(adders) / sizeof(adders[0]);

	while (h->at < h->end) {
		size_t which = hostile_number(h, 1) % (count + 1);

		if (which == count)
			return true;
		adders[which](h, p);
	}
	return false;
}

#endif
