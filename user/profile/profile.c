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
};

DEFINE_CLEANUP(struct strtab *, strtab_free)
DEFINE_CLEANUP(struct frametab *, frametab_free)
DEFINE_CLEANUP(struct stacktab *, stacktab_free)

int profile_new(struct profile **out)
{
	_cleanup_(profile_freep) struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->maps = calloc(1, sizeof(*p->maps));
	if (!p->maps || strtab_new(&p->strings) < 0 || frametab_new(&p->frames) < 0 ||
	    stacktab_new(&p->stacks) < 0)
		return -ENOMEM;
	*out = take_ptr(p);
	return 0;
}

static const size_t metadata_texts[] = {
	offsetof(struct metadata, host),      offsetof(struct metadata, kernel),
	offsetof(struct metadata, machine),   offsetof(struct metadata, version),
	offsetof(struct metadata, command),   offsetof(struct metadata, mode),
	offsetof(struct metadata, event),     offsetof(struct metadata, target),
	offsetof(struct metadata, source),    offsetof(struct metadata, cpu_model),
	offsetof(struct metadata, governor),  offsetof(struct metadata, build),
	offsetof(struct metadata, hash_seed), offsetof(struct metadata, allocator),
};
#define METADATA_TEXTS (sizeof(metadata_texts) / sizeof(metadata_texts[0]))

static char **metadata_text(struct metadata *m, size_t i)
{
	return (char **)((char *)m + metadata_texts[i]);
}

void metadata_release(struct metadata *m)
{
	for (size_t i = 0; i < METADATA_TEXTS; i++)
		free(*metadata_text(m, i));
	*m = (struct metadata){ 0 };
}

int metadata_copy(struct metadata *to, const struct metadata *from)
{
	_cleanup_(metadata_release) struct metadata copy = *from;
	struct metadata old;
	int r = 0;

	for (size_t i = 0; i < METADATA_TEXTS; i++)
		*metadata_text(&copy, i) = NULL;
	for (size_t i = 0; i < METADATA_TEXTS && !r; i++)
		r = profile_set_text(metadata_text(&copy, i),
				     *metadata_text((struct metadata *)from, i));
	if (r < 0)
		return r;
	old = *to;
	*to = copy;
	copy = old;
	return 0;
}

void metadata_join(struct metadata *to, const struct metadata *further)
{
	to->work = to->work > 0 && further->work > 0 ? to->work + further->work : 0;
	to->is_summed |= further->is_summed;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	strtab_free(p->strings);
	frametab_free(p->frames);
	stacktab_free(p->stacks);
	vec_release(&p->processes);
	vec_release(&p->threads);
	vec_release(&p->samples);
	for (size_t i = 0; i < p->counters.len; i++)
		free(p->counters.items[i].name);
	vec_release(&p->counters);
	metadata_release(&p->meta);
	if (p->maps) {
		idmap_release(&p->maps->processes);
		idmap_release(&p->maps->threads);
	}
	free(p->maps);
	free(p);
}

static bool process_equal(const struct process *a, const struct process *b)
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

int profile_add_process(struct profile *p, const struct process *process, uint32_t *index)
{
	uint64_t hash = hash_combine(hash_combine(process->pid, process->start_ns), process->name);
	struct idmap *map = &p->maps->processes;
	size_t at = IDMAP_START;
	uint32_t found;

	while ((found = idmap_next(map, hash, &at)) != IDMAP_NONE) {
		if (process_equal(&p->processes.items[found], process)) {
			*index = found;
			return 0;
		}
	}
	if (p->processes.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(map) < 0 || vec_push(&p->processes, *process) < 0)
		return -ENOMEM;
	*index = (uint32_t)p->processes.len - 1;
	idmap_insert(map, hash, *index);
	return 0;
}

int profile_add_thread(struct profile *p, const struct thread *t, uint32_t *index)
{
	uint64_t hash = hash_combine((uint64_t)t->process << 32 | t->tid, t->name);
	struct idmap *map = &p->maps->threads;
	size_t at = IDMAP_START;
	uint32_t found;

	assert(t->process < p->processes.len);
	while ((found = idmap_next(map, hash, &at)) != IDMAP_NONE) {
		const struct thread *other = &p->threads.items[found];

		if (other->process == t->process && other->tid == t->tid &&
		    other->name == t->name) {
			*index = found;
			return 0;
		}
	}
	if (p->threads.len >= IDMAP_NONE)
		return -EOVERFLOW;
	if (idmap_reserve(map) < 0 || vec_push(&p->threads, *t) < 0)
		return -ENOMEM;
	*index = (uint32_t)p->threads.len - 1;
	idmap_insert(map, hash, *index);
	return 0;
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

	if (strtab_new(&strings) < 0 || frametab_new(&frames) < 0 || stacktab_new(&stacks) < 0)
		return -ENOMEM;
	strtab_free(p->strings);
	frametab_free(p->frames);
	stacktab_free(p->stacks);
	p->strings = take_ptr(strings);
	p->frames = take_ptr(frames);
	p->stacks = take_ptr(stacks);
	vec_release(&p->processes);
	vec_release(&p->threads);
	vec_release(&p->samples);
	idmap_release(&p->maps->processes);
	idmap_release(&p->maps->threads);
	return 0;
}

static struct counter *counter_find(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->counters.len; i++)
		if (!strcmp(p->counters.items[i].name, name))
			return &p->counters.items[i];
	return NULL;
}

int profile_set_counter(struct profile *p, const char *name, uint64_t value)
{
	struct counter *c = counter_find(p, name), new;

	if (c) {
		c->value = value;
		return 0;
	}
	if (strlen(name) > COUNTER_NAME_MAX)
		return -EMSGSIZE;
	if (p->counters.len >= COUNTERS_MAX)
		return -EOVERFLOW;
	new.value = value;
	new.name = strdup(name);
	if (!new.name || vec_push(&p->counters, new) < 0) {
		free(new.name);
		return -ENOMEM;
	}
	return 0;
}

uint64_t profile_counter(const struct profile *p, const char *name)
{
	const struct counter *c = counter_find(p, name);

	return c ? c->value : 0;
}

int profile_set_text(char **text, const char *s)
{
	char *copy = s ? strdup(s) : NULL;

	if (s && !copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

size_t profile_bytes(const struct profile *p)
{
	return sizeof(*p) + sizeof(*p->maps) + strtab_bytes(p->strings) +
	       frametab_bytes(p->frames) + stacktab_bytes(p->stacks) +
	       idmap_bytes(&p->maps->processes) + idmap_bytes(&p->maps->threads) +
	       p->processes.cap * sizeof(*p->processes.items) +
	       p->threads.cap * sizeof(*p->threads.items) +
	       p->samples.cap * sizeof(*p->samples.items) +
	       p->counters.cap * sizeof(*p->counters.items);
}
