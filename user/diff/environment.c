/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

/* --- what is known of a run ------------------------------------------------------------------- */

/* A number's text stands here while it is looked at. */
struct number {
	char text[24];
};

typedef const char *(*get_fact)(const struct diff_input *in, const struct cube_run *run,
				struct number *number);

static const char *get_cpus(const struct diff_input *in, const struct cube_run *run,
			    struct number *number)
{
	uint64_t cpus = diff_run_recording(in, run)->cpus;

	snprintf(number->text, sizeof(number->text), "%" PRIu64, cpus);
	return cpus ? number->text : NULL;
}

static const char *get_python(const struct diff_input *in, const struct cube_run *run,
			      struct number *number)
{
	(void)number;
	return diff_run_python(in, run);
}

/* Ids of containers are new with each start: what counts is whether it is in one. */
static const char *get_container(const struct diff_input *in, const struct cube_run *run,
				 struct number *number)
{
	const struct process *process = diff_run_process(in, run);
	const struct recording *r = diff_run_recording(in, run);

	(void)number;
	if (!process || !r->version || r->source)
		return NULL;
	return process_has_place(process) ? "yes" : "no";
}

static const struct fact {
	const char *what;
	size_t text; /* offset in struct recording, where there is no function */
	get_fact get;
} facts[ENVIRONMENT_FACTS] = {
	{ "CPU model", offsetof(struct recording, cpu_model), NULL },
	{ "CPUs", 0, get_cpus },
	{ "frequency governor", offsetof(struct recording, governor), NULL },
	{ "kernel", offsetof(struct recording, kernel), NULL },
	{ "in a container", 0, get_container },
	{ "Python", 0, get_python },
	{ "build of Python", offsetof(struct recording, build), NULL },
	{ "hash seed", offsetof(struct recording, hash_seed), NULL },
	{ "allocator", offsetof(struct recording, allocator), NULL },
};

const char *const environment_keys[ENVIRONMENT_FACTS] = {
	"cpu_model", "cpus",  "governor",  "kernel",    "in_container",
	"python",    "build", "hash_seed", "allocator",
};

static const char *get(const struct fact *fact, const struct diff_input *in,
		       const struct cube_run *run, struct number *number)
{
	if (fact->get)
		return fact->get(in, run, number);
	return *(const char *const *)((const char *)diff_run_recording(in, run) + fact->text);
}

/* --- both sides ------------------------------------------------------------------------------- */

/* Does a run of the side, before the given one, say the same? */
static bool has_value(const struct fact *fact, const struct diff_input *in, enum diff_side side,
		      size_t before, const char *value)
{
	for (size_t i = 0; i < before; i++) {
		const struct cube_run *run = &in->cube.runs.items[i];
		struct number number;
		const char *text = run->side == side ? get(fact, in, run, &number) : NULL;

		if (text && !strcmp(text, value))
			return true;
	}
	return false;
}

/* Each value of a side once; *is_alone: the other side lacks one of them. */
static int put_values(const struct fact *fact, const struct diff_input *in, enum diff_side side,
		      struct strbuf *out, bool *is_alone)
{
	for (size_t i = 0; i < in->cube.runs.len; i++) {
		const struct cube_run *run = &in->cube.runs.items[i];
		struct number number;
		const char *value = run->side == side ? get(fact, in, run, &number) : NULL;

		if (!value || has_value(fact, in, side, i, value))
			continue;
		*is_alone = *is_alone || !has_value(fact, in, !side, in->cube.runs.len, value);
		if (out->len)
			strbuf_puts(out, ", ");
		strbuf_puts(out, value);
	}
	return strbuf_error(out);
}

int environment_put(const struct diff_input *in, enum diff_side side, size_t fact,
		    struct strbuf *out)
{
	bool is_alone = false;

	return put_values(&facts[fact], in, side, out, &is_alone);
}

static int compare_fact(const struct fact *fact, const struct diff_input *in,
			struct differences *out)
{
	_cleanup_(strbuf_releasep) struct strbuf base = STRBUF_INIT, current = STRBUF_INIT;
	struct difference found = { .what = fact->what };
	bool is_alone = false;

	if (put_values(fact, in, DIFF_BASE, &base, &is_alone) < 0 ||
	    put_values(fact, in, DIFF_CURRENT, &current, &is_alone) < 0)
		return -ENOMEM;
	if (!base.len || !current.len || !is_alone)
		return 0;
	found.value[DIFF_BASE] = strdup(strbuf_str(&base));
	found.value[DIFF_CURRENT] = strdup(strbuf_str(&current));
	if (found.value[DIFF_BASE] && found.value[DIFF_CURRENT] && !vec_push(out, found))
		return 0;
	free(found.value[DIFF_BASE]);
	free(found.value[DIFF_CURRENT]);
	return -ENOMEM;
}

int environment_compare(const struct diff_input *in, struct differences *out)
{
	int r = 0;

	for (size_t i = 0; i < ENVIRONMENT_FACTS && !r; i++)
		r = compare_fact(&facts[i], in, out);
	return r;
}

void differences_release(struct differences *d)
{
	for (size_t i = 0; i < d->len; i++)
		for (int s = 0; s < DIFF_SIDES; s++)
			free(d->items[i].value[s]);
	vec_release(d);
}
