/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "profile/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct recording_field recording_fields[RECORDING_FIELDS] = {
	{ 1, RECORDING_NUMBER, offsetof(struct recording, start_realtime_ns) },
	{ 2, RECORDING_NUMBER, offsetof(struct recording, start_monotonic_ns) },
	{ 3, RECORDING_NUMBER, offsetof(struct recording, duration_ns) },
	{ 4, RECORDING_NUMBER, offsetof(struct recording, rate_hz) },
	{ 5, RECORDING_NUMBER, offsetof(struct recording, interval_ns) },
	{ 6, RECORDING_NUMBER, offsetof(struct recording, cpus) },
	{ 7, RECORDING_NUMBER, offsetof(struct recording, has_ended) },
	{ 8, RECORDING_TEXT, offsetof(struct recording, host) },
	{ 9, RECORDING_TEXT, offsetof(struct recording, kernel) },
	{ 10, RECORDING_TEXT, offsetof(struct recording, machine) },
	{ 11, RECORDING_TEXT, offsetof(struct recording, version) },
	{ 12, RECORDING_TEXT, offsetof(struct recording, command) },
	{ 13, RECORDING_TEXT, offsetof(struct recording, mode) },
	{ 14, RECORDING_TEXT, offsetof(struct recording, event) },
	{ 15, RECORDING_TEXT, offsetof(struct recording, target) },
	{ 16, RECORDING_REAL, offsetof(struct recording, work) },
	{ 17, RECORDING_TEXT, offsetof(struct recording, source) },
	{ 18, RECORDING_NUMBER, offsetof(struct recording, is_whole) },
	{ 19, RECORDING_NUMBER, offsetof(struct recording, is_summed) },
	{ 20, RECORDING_TEXT, offsetof(struct recording, cpu_model) },
	{ 21, RECORDING_TEXT, offsetof(struct recording, governor) },
	{ 22, RECORDING_TEXT, offsetof(struct recording, build) },
	{ 23, RECORDING_TEXT, offsetof(struct recording, hash_seed) },
	{ 24, RECORDING_TEXT, offsetof(struct recording, allocator) },
	{ 25, RECORDING_TEXT, offsetof(struct recording, part) },
};

static void release_texts(struct recording *r)
{
	for (size_t i = 0; i < RECORDING_FIELDS; i++)
		if (recording_fields[i].type == RECORDING_TEXT)
			free(*(char **)recording_field(r, &recording_fields[i]));
}

void recording_keep_counters(struct recording *r, const char *prefix)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->counters.len; i++) {
		if (prefix && !strncmp(r->counters.items[i].name, prefix, strlen(prefix)))
			r->counters.items[kept++] = r->counters.items[i];
		else
			free(r->counters.items[i].name);
	}
	r->counters.len = kept;
}

void recording_clear_counters(struct recording *r)
{
	recording_keep_counters(r, NULL);
}

void recording_release(struct recording *r)
{
	release_texts(r);
	recording_clear_counters(r);
	vec_release(&r->counters);
	*r = (struct recording){ 0 };
}

int recording_copy(struct recording *to, const struct recording *from)
{
	struct recording copy = *from;
	int r = 0;

	for (size_t i = 0; i < RECORDING_FIELDS; i++) {
		const struct recording_field *f = &recording_fields[i];

		if (f->type == RECORDING_TEXT)
			*(char **)recording_field(&copy, f) = NULL;
	}
	for (size_t i = 0; i < RECORDING_FIELDS && !r; i++) {
		const struct recording_field *f = &recording_fields[i];

		if (f->type == RECORDING_TEXT)
			r = recording_set_text(recording_field(&copy, f),
					       *(char **)recording_field(from, f));
	}
	if (r < 0) {
		release_texts(&copy);
		return r;
	}
	memcpy(&copy.counters, &to->counters, sizeof(copy.counters));
	release_texts(to);
	*to = copy;
	return 0;
}

int recording_set_text(char **text, const char *s)
{
	char *copy = s ? strdup(s) : NULL;

	if (s && !copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

struct value_unit recording_value_unit(const struct recording *r)
{
	if (r->interval_ns)
		return (struct value_unit){ r->interval_ns, UNIT_NS };
	if (r->other_unit.period)
		return r->other_unit;
	return (struct value_unit){ 1, UNIT_COUNT };
}

static struct counter *counter_find(const struct recording *r, const char *name)
{
	for (size_t i = 0; i < r->counters.len; i++)
		if (!strcmp(r->counters.items[i].name, name))
			return &r->counters.items[i];
	return NULL;
}

int recording_set_counter(struct recording *r, const char *name, uint64_t value)
{
	struct counter *c = counter_find(r, name), new;

	if (c) {
		c->value = value;
		return 0;
	}
	if (strlen(name) > COUNTER_NAME_MAX)
		return -EMSGSIZE;
	if (r->counters.len >= COUNTERS_MAX)
		return -EOVERFLOW;
	new.value = value;
	new.name = strdup(name);
	if (!new.name || vec_push(&r->counters, new) < 0) {
		free(new.name);
		return -ENOMEM;
	}
	return 0;
}

bool recording_has_counter(const struct recording *r, const char *name)
{
	return counter_find(r, name);
}

uint64_t recording_counter(const struct recording *r, const char *name)
{
	const struct counter *c = counter_find(r, name);

	return c ? c->value : 0;
}

int recording_add_counters(struct recording *r, const struct recording *from)
{
	int error = 0;

	for (size_t i = 0; i < from->counters.len && !error; i++) {
		const struct counter *c = &from->counters.items[i];

		error = recording_set_counter(r, c->name, recording_counter(r, c->name) + c->value);
	}
	return error;
}
