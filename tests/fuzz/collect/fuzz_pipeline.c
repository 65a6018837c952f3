/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes are what the ring brings, record by record: a length of two bytes, then so many. No
 * kernel is needed: the session below takes what it is told, and each kind of layout is known. The
 * processes are this one and one there is not; whatever comes, the profile is sound.
 */
#include <unistd.h>

#include "collect/discover.c" /* its interpreters are filled in here */
#include "collect/pipeline.h"
#include "target/offsets.h"
#include "tests/fuzz/hostile_profile.h"
#include "tests/no_kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define RECORD_BYTES_MAX 4096

static const uint8_t minors[] = { 6, 8, 10, 11, 12 }; /* one of each way to keep names and lines */

int session_add_layout(struct session *s, const struct py_offsets *off)
{
	const uint8_t *minor = memchr(minors, off->minor, sizeof(minors));

	(void)s;
	return (int)(minor - minors);
}

static void add_layouts(struct discovery *d)
{
	for (int i = 0; i < (int)sizeof(minors); i++) {
		struct py_runtime rt = { .version = VERSION_HEX(3, minors[i], 0,
								VERSION_LEVEL_FINAL) };

		require(offsets_find(rt.version, 0, false, &rt.offsets) == 0);
		require(interpreters_add(d->interpreters, NULL, &rt) == i);
	}
}

/* All records have it, at offsets of their own; no process of this machine is to be looked at. */
static void set_pid(uint8_t *record, size_t len)
{
	static const uint8_t offsets[] = {
		[EVENT_SAMPLE] = offsetof(struct sample_event, pid),
		[EVENT_CODE] = offsetof(struct code_event, pid),
		[EVENT_LINES] = offsetof(struct lines_event, pid),
		[EVENT_PROCESS] = offsetof(struct process_event, pid),
		[EVENT_THREAD] = offsetof(struct thread_event, pid),
		[EVENT_WHO] = offsetof(struct who_event, pid),
		[EVENT_PAGE] = offsetof(struct page_event, pid),
	};
	uint32_t pid;

	if (!len || !*record || *record >= sizeof(offsets) || len < offsets[*record] + sizeof(pid))
		return;
	memcpy(&pid, record + offsets[*record], sizeof(pid));
	pid = pid & 1 && *record != EVENT_WHO ? (uint32_t)getpid() : NO_PID;
	memcpy(record + offsets[*record], &pid, sizeof(pid));
}

/* In memory of its own, aligned as the ring has it, so that each byte read behind it is seen. */
static void feed(struct pipeline *p, const uint8_t *bytes, size_t len)
{
	uint8_t *record = malloc(len ? len : 1);

	require(record != NULL);
	memcpy(record, bytes, len);
	set_pid(record, len);
	require(pipeline_record(p, record, len) == 0);
	free(record);
}

static void check(const struct profile *p)
{
	const struct stack_entry *entries = stacktab_entries(p->stacks);

	for (size_t i = 0; i < p->samples.len; i++) {
		const struct sample *s = &p->samples.items[i];

		require(s->thread < p->threads.len && s->stack < stacktab_count(p->stacks));
		require(s->value >= 1 && s->opcode < strtab_count(p->strings));
		require(s->labels < labeltab_count(p->labels));
	}
	for (uint32_t i = 1; i < stacktab_count(p->stacks); i++)
		require(entries[i].parent < i && entries[i].frame < frametab_count(p->frames));
	for (size_t i = 0; i < p->threads.len; i++)
		require(p->threads.items[i].process < p->processes.len);
}

/* A window of the agent: settled, looked at, forgotten. */
static void end_window(struct pipeline *p, struct profile *profile)
{
	struct times *t = pipeline_times(p);

	if (t) {
		times_begin_list(t, UINT64_MAX);
		require(times_settle(t, UINT64_MAX, TIMES_REST) == 0);
	}
	require(pipeline_settle(p, UINT64_MAX, PIPELINE_ENDS) == 0);
	check(profile);
	require(profile_reset(profile) == 0 && pipeline_forget_ids(p) == 0);
}

static struct context_label_list labels = {
	.items = { { .name = (char *)"route" }, { .name = (char *)"trace_id", .id_bytes = 16 } },
	.len = 2,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct pipeline_opts opts = { .interval_ns = 10000000,
					    .labels = &labels,
					    .modes = len && *bytes & 1 ? MODE_CPU : MODE_WALL };
	struct hostile h = { bytes, bytes + len };
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_(discovery_freep) struct discovery *d = NULL;
	_cleanup_(pipeline_freep) struct pipeline *p = NULL;

	require(profile_new(&profile) == 0 && discovery_new(NULL, &d) == 0);
	add_layouts(d);
	require(pipeline_new(NULL, d, profile, &opts, &p) == 0);
	while (h.at < h.end) {
		uint64_t head = hostile_number(&h, 2);
		size_t size = head % RECORD_BYTES_MAX, left = (size_t)(h.end - h.at);

		size = size < left ? size : left;
		feed(p, h.at, size);
		h.at += size;
		if (head & 0x8000)
			end_window(p, profile);
	}
	end_window(p, profile);
	return 0;
}
