/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/published.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "collect/context_labels.h"
#include "collect/looker.h"
#include "profile/idmap.h"
#include "target/process_context.h"

#define PAUSE_MIN_NS NS_PER_SECOND
#define PAUSE_MAX_NS (64 * NS_PER_SECOND)

struct publisher {
	uint64_t process;
	uint32_t pid;
	struct process_context context;
	uint32_t labels;   /* set in the profile, */
	bool has_labels;   /* if it is there */
	bool is_asked;     /* a look is under way, */
	bool is_awaited;   /* the first one */
	uint64_t due_ns;   /* the next look, CLOCK_MONOTONIC */
	uint64_t pause_ns; /* and the one behind that */
};

struct publications {
	struct session *session;
	struct discovery *discovery;
	struct profile *profile;
	bool has_resources;
	uint32_t changes; /* of what is published */
	VEC(struct publisher) known;
	struct idmap ids;
};

int publications_new(struct session *session, struct discovery *discovery, struct profile *profile,
		     bool has_resources, struct publications **out)
{
	struct publications *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return -ENOMEM;
	ps->session = session;
	ps->discovery = discovery;
	ps->profile = profile;
	ps->has_resources = has_resources;
	*out = ps;
	return 0;
}

void publications_free(struct publications *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->known.len; i++)
		process_context_release(&ps->known.items[i].context);
	vec_release(&ps->known);
	idmap_release(&ps->ids);
	free(ps);
}

static struct publisher *find(const struct publications *ps, uint64_t process)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&ps->ids, process, &at)) != IDMAP_NONE)
		if (ps->known.items[i].process == process)
			return &ps->known.items[i];
	return NULL;
}

struct ask {
	struct question question;
	struct publications *publications;
	int r;
	struct published found;
};

static int ask_look(struct question *q, struct looker *l)
{
	struct ask *a = (struct ask *)q;

	a->r = looker_published(l, (pid_t)q->target.pid, &a->found);
	if (a->r == -ENOMEM)
		return a->r;
	err_clear(); /* it is looked at again */
	return 0;
}

/* Another one, or the first? */
static bool is_new(const struct publisher *p, const struct published *found)
{
	return p->context.published_ns != found->context.published_ns;
}

static int take_found(struct publications *ps, struct publisher *p, struct published *found)
{
	found->threads.process = found->threads.offset || found->threads.module ? p->process : 0;
	if (is_new(p, found)) {
		process_context_release(&p->context);
		p->context = found->context;
		found->context = (struct process_context){ 0 };
		p->has_labels = false;
		ps->changes++;
	}
	return found->threads.process
		       ? session_set_thread_context(ps->session, p->pid, &found->threads)
		       : 0;
}

static int ask_take(struct question *q)
{
	struct ask *a = (struct ask *)q;
	struct publisher *p = find(a->publications, q->target.process);

	if (!p)
		return 0;
	p->is_asked = p->is_awaited = false;
	if (q->r || a->r)
		return q->r == -ENOMEM ? q->r : 0;
	return take_found(a->publications, p, &a->found);
}

static void ask_free(struct question *q)
{
	process_context_release(&((struct ask *)q)->found.context);
	free(q);
}

static int ask(struct publications *ps, struct publisher *p, uint64_t now_ns)
{
	struct ask *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->question = (struct question){ .target = { .process = p->process, .pid = p->pid },
					 .look = ask_look,
					 .take = ask_take,
					 .free = ask_free };
	a->publications = ps;
	p->due_ns = now_ns + p->pause_ns;
	if (p->pause_ns < PAUSE_MAX_NS)
		p->pause_ns *= 2;
	r = discovery_ask(ps->discovery, &a->question);
	p->is_asked = !r;
	return r == -EAGAIN ? 0 : r;
}

static int add(struct publications *ps, const struct sample_event *e)
{
	const struct publisher new = { .process = e->process,
				       .pid = e->pid,
				       .pause_ns = PAUSE_MIN_NS };
	struct publisher *p;
	int r = idmap_reserve(&ps->ids);

	if (!r)
		r = vec_push(&ps->known, new);
	if (r < 0)
		return r;
	idmap_insert(&ps->ids, e->process, (uint32_t)ps->known.len - 1);
	p = &ps->known.items[ps->known.len - 1];
	r = ask(ps, p, e->ktime_ns);
	p->is_awaited = p->is_asked;
	return r;
}

int publications_meet(struct publications *ps, const struct sample_event *e)
{
	struct publisher *p = find(ps, e->process);

	if (!p)
		return add(ps, e);
	return p->is_asked || e->ktime_ns < p->due_ns ? 0 : ask(ps, p, e->ktime_ns);
}

bool publications_is_awaited(const struct publications *ps, uint64_t process)
{
	const struct publisher *p = find(ps, process);

	return p && p->is_awaited;
}

static int add_label(struct publications *ps, const struct process_attribute *a, uint32_t *set)
{
	struct strtab *strings = ps->profile->strings;
	uint32_t name, value;
	int r;

	if (!context_label_is_name(a->name))
		return 0;
	if ((r = strtab_intern(strings, a->name, strlen(a->name), &name)) < 0 ||
	    (r = strtab_intern(strings, a->value, strlen(a->value), &value)) < 0)
		return r;
	return labeltab_add(ps->profile->labels, *set, name, value, set);
}

int publications_labels(struct publications *ps, uint64_t process, uint32_t *set)
{
	struct publisher *p = ps->has_resources ? find(ps, process) : NULL;
	uint32_t labels = 0;
	int r = 0;

	if (!p)
		return 0;
	for (size_t i = 0; i < p->context.attributes.len && !p->has_labels && !r; i++)
		r = add_label(ps, &p->context.attributes.items[i], &labels);
	if (r < 0)
		return r;
	if (!p->has_labels)
		p->labels = labels;
	p->has_labels = true;
	*set = p->labels;
	return 0;
}

const char *publications_name(void *arg, uint64_t process, uint8_t key)
{
	const struct publisher *p = find(arg, process);

	return p && key < p->context.keys.len ? p->context.keys.items[key] : NULL;
}

const uint32_t *publications_changes(const struct publications *ps)
{
	return &ps->changes;
}

int publications_forget_ids(struct publications *ps)
{
	size_t kept = 0;
	int r = 0;

	idmap_release(&ps->ids);
	for (size_t i = 0; i < ps->known.len; i++) {
		struct publisher *p = &ps->known.items[i];

		p->has_labels = false;
		if (!r && discovery_has(ps->discovery, p->process) &&
		    !(r = idmap_reserve(&ps->ids))) {
			idmap_insert(&ps->ids, p->process, (uint32_t)kept);
			ps->known.items[kept++] = *p;
		} else {
			process_context_release(&p->context);
		}
	}
	ps->known.len = kept;
	return r;
}
