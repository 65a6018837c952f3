/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "profile/idmap.h"

struct profile_maps {
	struct idmap processes, threads;
	struct idmap same_processes, same_threads; /* of those whose `same` they are themselves */
	struct idmap first_names;                  /* of these threads, those that none is */
	VEC(struct string_facts) facts;            /* by string id */
};

static void release_maps(struct profile_maps *maps)
{
	idmap_release(&maps->processes);
	idmap_release(&maps->threads);
	idmap_release(&maps->same_processes);
	idmap_release(&maps->same_threads);
	idmap_release(&maps->first_names);
	vec_release(&maps->facts);
}

DEFINE_CLEANUP(struct strtab *, strtab_free)
DEFINE_CLEANUP(struct frametab *, frametab_free)
DEFINE_CLEANUP(struct stacktab *, stacktab_free)
DEFINE_CLEANUP(struct labeltab *, labeltab_free)

int profile_new(struct profile **out)
{
	_cleanup_(profile_freep) struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->maps = calloc(1, sizeof(*p->maps));
	if (!p->maps || strtab_new(&p->strings) < 0 || frametab_new(&p->frames) < 0 ||
	    stacktab_new(&p->stacks) < 0 || labeltab_new(&p->labels) < 0 ||
	    vec_push(&p->recordings, ((struct recording){ 0 })) < 0)
		return -ENOMEM;
	*out = take_ptr(p);
	return 0;
}

int profile_begin_recording(struct profile *p, uint32_t *index)
{
	if (p->recordings.len >= UINT32_MAX)
		return -EOVERFLOW;
	if (p->has_begun && vec_push(&p->recordings, ((struct recording){ 0 })) < 0)
		return -ENOMEM;
	p->has_begun = true;
	*index = (uint32_t)p->recordings.len - 1;
	return 0;
}

struct recording profile_facts(const struct profile *p)
{
	struct recording all = p->recordings.items[0];

	memset(&all.counters, 0, sizeof(all.counters));
	for (size_t i = 1; i < p->recordings.len; i++) {
		const struct recording *r = &p->recordings.items[i];

		all.duration_ns += r->duration_ns;
		all.has_ended &= r->has_ended;
		all.work = all.work > 0 && r->work > 0 ? all.work + r->work : 0;
		all.is_summed |= r->is_summed;
	}
	return all;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	strtab_free(p->strings);
	frametab_free(p->frames);
	stacktab_free(p->stacks);
	labeltab_free(p->labels);
	vec_release(&p->kinds);
	vec_release(&p->processes);
	vec_release(&p->titles);
	vec_release(&p->threads);
	vec_release(&p->sources);
	vec_release(&p->samples);
	for (size_t i = 0; i < p->recordings.len; i++)
		recording_release(&p->recordings.items[i]);
	vec_release(&p->recordings);
	if (p->maps)
		release_maps(p->maps);
	free(p->maps);
	free(p);
}

/* Also of two recordings. */
static bool is_same_process(const struct process *a, const struct process *b)
{
	return a->pid == b->pid && a->ns_pid == b->ns_pid && a->ppid == b->ppid &&
	       a->start_ns == b->start_ns && a->name == b->name &&
	       a->command_line == b->command_line && a->python_version == b->python_version &&
	       a->implementation == b->implementation && a->executable == b->executable;
}

void process_set_place(struct process *p, const struct process *from)
{
	if (process_has_place(p))
		return;
	p->container = from->container;
	p->pod_uid = from->pod_uid;
	p->pod_name = from->pod_name;
	p->pod_namespace = from->pod_namespace;
}

int process_put_place(const struct profile *p, const struct process *process, struct strbuf *out)
{
	const char *uid = strtab_get(p->strings, process->pod_uid);
	const char *name = strtab_get(p->strings, process->pod_name);

	if (*name)
		return strbuf_appendf(out, "%s/%s", strtab_get(p->strings, process->pod_namespace),
				      name);
	if (*uid)
		return strbuf_appendf(out, "pod %.8s", uid);
	if (process->container)
		return strbuf_appendf(out, "container %.12s",
				      strtab_get(p->strings, process->container));
	return 0;
}

/* The first process that differs from it in the recording only, or IDMAP_NONE. */
static uint32_t same_process(const struct profile *p, const struct process *process, uint64_t hash)
{
	size_t at = IDMAP_START;
	uint32_t found;

	while ((found = idmap_next(&p->maps->same_processes, hash, &at)) != IDMAP_NONE)
		if (is_same_process(&p->processes.items[found], process))
			break;
	return found;
}

static uint64_t process_hash(const struct process *p)
{
	return hash_combine(hash_combine(p->pid, p->start_ns), p->name);
}

int profile_add_process(struct profile *p, const struct process *process, uint32_t *index)
{
	uint64_t hash = process_hash(process);
	uint64_t own_hash = hash_combine(hash, process->recording);
	struct idmap *map = &p->maps->processes;
	struct process made = *process;
	size_t at = IDMAP_START;
	uint32_t found;

	assert(process->recording < p->recordings.len);
	while ((found = idmap_next(map, own_hash, &at)) != IDMAP_NONE) {
		const struct process *other = &p->processes.items[found];

		if (other->recording == process->recording && is_same_process(other, process)) {
			*index = found;
			return 0;
		}
	}
	found = same_process(p, process, hash);
	made.same = found != IDMAP_NONE ? found : (uint32_t)p->processes.len;
	made.number = found != IDMAP_NONE ? p->processes.items[found].number
					  : (uint32_t)p->maps->same_processes.used;
	if (p->processes.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(map) < 0 || idmap_reserve(&p->maps->same_processes) < 0 ||
	    vec_push(&p->processes, made) < 0)
		return -ENOMEM;
	*index = (uint32_t)p->processes.len - 1;
	idmap_insert(map, own_hash, *index);
	if (found == IDMAP_NONE)
		idmap_insert(&p->maps->same_processes, hash, *index);
	return 0;
}

int profile_title_process(struct profile *p, uint32_t index, uint32_t title)
{
	struct process *process = &p->processes.items[index];
	const struct process_title before = { index, process->name, process->command_line };

	if (process->name == title && process->command_line == title)
		return 0;
	if (p->titles.len == PROCESS_TITLES_MAX)
		return 0;
	if (idmap_reserve(&p->maps->processes) < 0 || vec_push(&p->titles, before) < 0)
		return -ENOMEM;
	process->name = process->command_line = title;
	idmap_insert(&p->maps->processes, hash_combine(process_hash(process), process->recording),
		     index);
	return 0;
}

static uint64_t same_hash(uint32_t process, const struct thread *t)
{
	return hash_combine((uint64_t)process << 32 | t->tid, t->name);
}

/* The first thread of processes that are the same, IDMAP_NONE. */
static uint32_t same_thread(const struct profile *p, const struct thread *t, uint32_t process,
			    uint64_t hash)
{
	size_t at = IDMAP_START;
	uint32_t found;

	while ((found = idmap_next(&p->maps->same_threads, hash, &at)) != IDMAP_NONE) {
		const struct thread *other = &p->threads.items[found];

		if (p->processes.items[other->process].same == process && other->tid == t->tid &&
		    other->start_ns == t->start_ns && other->name == t->name)
			break;
	}
	return found;
}

/* Has it an entry by another name? Where tools do not tell numbers, names tell threads apart. */
static bool is_renamed(const struct profile *p, const struct thread *t, uint32_t process,
		       uint64_t hash)
{
	size_t at = IDMAP_START;
	uint32_t found;

	while (t->tid && (found = idmap_next(&p->maps->first_names, hash, &at)) != IDMAP_NONE) {
		const struct thread *other = &p->threads.items[found];

		if (p->processes.items[other->process].same == process && other->tid == t->tid &&
		    (other->start_ns == t->start_ns || !other->start_ns || !t->start_ns))
			return true;
	}
	return false;
}

static uint64_t thread_hash(const struct thread *t)
{
	return hash_combine(hash_combine((uint64_t)t->process << 32 | t->tid, t->name),
			    t->start_ns);
}

int profile_add_thread(struct profile *p, const struct thread *t, uint32_t *index)
{
	uint64_t hash = thread_hash(t);
	uint64_t alike_hash, any_hash;
	struct idmap *map = &p->maps->threads;
	struct thread made = *t;
	size_t at = IDMAP_START;
	uint32_t found, process;

	assert(t->process < p->processes.len);
	while ((found = idmap_next(map, hash, &at)) != IDMAP_NONE) {
		const struct thread *other = &p->threads.items[found];

		if (other->process == t->process && other->tid == t->tid &&
		    other->start_ns == t->start_ns && other->name == t->name) {
			*index = found;
			return 0;
		}
	}
	process = p->processes.items[t->process].same;
	any_hash = hash_u64((uint64_t)process << 32 | t->tid);
	alike_hash = same_hash(process, t);
	found = same_thread(p, t, process, alike_hash);
	made.same = found != IDMAP_NONE ? found : (uint32_t)p->threads.len;
	made.number = found != IDMAP_NONE ? p->threads.items[found].number
					  : (uint32_t)p->maps->same_threads.used;
	if (p->threads.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(map) < 0 || idmap_reserve(&p->maps->same_threads) < 0 ||
	    idmap_reserve(&p->maps->first_names) < 0 || vec_push(&p->threads, made) < 0)
		return -ENOMEM;
	*index = (uint32_t)p->threads.len - 1;
	idmap_insert(map, hash, *index);
	if (found != IDMAP_NONE)
		return 0;
	idmap_insert(&p->maps->same_threads, alike_hash, *index);
	if (!is_renamed(p, t, process, any_hash))
		idmap_insert(&p->maps->first_names, any_hash, *index);
	return 0;
}

int profile_name_thread(struct profile *p, uint32_t index, uint32_t name)
{
	struct thread *t = &p->threads.items[index];
	uint32_t process = p->processes.items[t->process].same, found;
	uint64_t hash;

	if (t->name == name)
		return 0;
	if (idmap_reserve(&p->maps->threads) < 0 || idmap_reserve(&p->maps->same_threads) < 0)
		return -ENOMEM;
	t->name = name;
	idmap_insert(&p->maps->threads, thread_hash(t), index);
	hash = same_hash(process, t);
	found = same_thread(p, t, process, hash);
	if (found == IDMAP_NONE)
		idmap_insert(&p->maps->same_threads, hash, index);
	else
		t->same = found;
	return 0;
}

size_t profile_count_processes(const struct profile *p)
{
	return p->maps->same_processes.used;
}

size_t profile_count_threads(const struct profile *p)
{
	return p->maps->first_names.used;
}

int profile_add_kind(struct profile *p, const struct sample_kind *added, uint16_t *kind)
{
	for (size_t i = 0; i < p->kinds.len; i++) {
		const struct sample_kind *k = &p->kinds.items[i];

		if (k->name == added->name && k->event == added->event &&
		    k->period == added->period && k->unit == added->unit) {
			*kind = (uint16_t)(i + 1);
			return 0;
		}
	}
	if (p->kinds.len >= KINDS_MAX)
		return -EOVERFLOW;
	if (vec_push(&p->kinds, *added) < 0)
		return -ENOMEM;
	*kind = (uint16_t)p->kinds.len;
	return 0;
}

uint64_t profile_last_ns(const struct profile *p)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < p->samples.len; i++)
		if (p->samples.items[i].time_ns > last_ns)
			last_ns = p->samples.items[i].time_ns;
	return last_ns;
}

void profile_clear_samples(struct profile *p)
{
	p->samples.len = 0;
}

int profile_reset(struct profile *p)
{
	_cleanup_(strtab_freep) struct strtab *strings = NULL;
	_cleanup_(frametab_freep) struct frametab *frames = NULL;
	_cleanup_(stacktab_freep) struct stacktab *stacks = NULL;
	_cleanup_(labeltab_freep) struct labeltab *labels = NULL;

	if (strtab_new(&strings) < 0 || frametab_new(&frames) < 0 || stacktab_new(&stacks) < 0 ||
	    labeltab_new(&labels) < 0)
		return -ENOMEM;
	strtab_free(p->strings);
	frametab_free(p->frames);
	stacktab_free(p->stacks);
	labeltab_free(p->labels);
	p->strings = take_ptr(strings);
	p->frames = take_ptr(frames);
	p->stacks = take_ptr(stacks);
	p->labels = take_ptr(labels);
	vec_release(&p->kinds);
	vec_release(&p->processes);
	vec_release(&p->titles);
	vec_release(&p->threads);
	vec_release(&p->sources);
	vec_release(&p->samples);
	release_maps(p->maps);
	return 0;
}

int profile_set_counter(struct profile *p, const char *name, uint64_t value)
{
	return recording_set_counter(profile_recording(p), name, value);
}

uint64_t profile_counter(const struct profile *p, const char *name)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->recordings.len; i++)
		sum += recording_counter(&p->recordings.items[i], name);
	return sum;
}

int profile_sum_counters(const struct profile *p, struct recording *sum)
{
	int r = 0;

	for (size_t i = 0; i < p->recordings.len && !r; i++)
		r = recording_add_counters(sum, &p->recordings.items[i]);
	return r;
}

struct string_facts *profile_string_facts(const struct profile *p, uint32_t string)
{
	size_t count = strtab_count(p->strings), known = p->maps->facts.len;

	if (string >= known) {
		if (vec_reserve(&p->maps->facts, count - known) < 0)
			return NULL;
		memset(p->maps->facts.items + known, 0,
		       (count - known) * sizeof(*p->maps->facts.items));
		p->maps->facts.len = count;
	}
	return &p->maps->facts.items[string];
}

size_t profile_bytes(const struct profile *p)
{
	return sizeof(*p) + sizeof(*p->maps) + strtab_bytes(p->strings) +
	       frametab_bytes(p->frames) + stacktab_bytes(p->stacks) + labeltab_bytes(p->labels) +
	       p->kinds.cap * sizeof(*p->kinds.items) + idmap_bytes(&p->maps->processes) +
	       idmap_bytes(&p->maps->threads) + idmap_bytes(&p->maps->same_processes) +
	       idmap_bytes(&p->maps->same_threads) + idmap_bytes(&p->maps->first_names) +
	       p->maps->facts.cap * sizeof(*p->maps->facts.items) +
	       p->processes.cap * sizeof(*p->processes.items) +
	       p->threads.cap * sizeof(*p->threads.items) +
	       p->sources.cap * sizeof(*p->sources.items) +
	       p->samples.cap * sizeof(*p->samples.items) +
	       p->recordings.cap * sizeof(*p->recordings.items);
}
