/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/origins.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"
#include "profile/idmap.h"
#include "target/cgroup.h"

struct known {
	uint64_t start_ns;
	uint64_t command_hash; /* after an exec it is another program */
	uint32_t pid;
	bool is_in_window;
	char *cgroup; /* owned; NULL: not asked for */
	struct origin origin;
};

struct origins {
	const struct config *config;
	struct kubernetes *kubernetes;
	struct cgroup_namespace ours;
	VEC(struct known) known;
	struct idmap by_process; /* index into known */
	VEC(uint32_t) in_window; /* the same, by index into the profile's processes */
};

static bool has_rules(const struct origins *o)
{
	return o->config->relabel.list.len;
}

int origins_new(const struct config *config, struct kubernetes *kubernetes, struct origins **out)
{
	struct origins *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->config = config;
	o->kubernetes = kubernetes;
	if (cgroup_namespace_find(&o->ours) < 0)
		err_clear(); /* the recorder has said that */
	*out = o;
	return 0;
}

void origins_free(struct origins *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->known.len; i++)
		free(o->known.items[i].cgroup);
	cgroup_namespace_release(&o->ours);
	idmap_release(&o->by_process);
	vec_release(&o->in_window);
	vec_release(&o->known);
	free(o);
}

static uint64_t hash_of(const struct known *k)
{
	return hash_combine(hash_combine(k->pid, k->start_ns), k->command_hash);
}

static uint32_t find(const struct origins *o, const struct known *wanted)
{
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&o->by_process, hash_of(wanted), &at)) != IDMAP_NONE) {
		const struct known *k = &o->known.items[i];

		if (k->pid == wanted->pid && k->start_ns == wanted->start_ns &&
		    k->command_hash == wanted->command_hash)
			break;
	}
	return i;
}

static int insert(struct origins *o, const struct known *k)
{
	if (idmap_reserve(&o->by_process) < 0 || vec_push(&o->known, *k) < 0)
		return -ENOMEM;
	idmap_insert(&o->by_process, hash_of(k), (uint32_t)o->known.len - 1);
	return 0;
}

/* Takes k->cgroup over, in any case. */
static int add_known(struct origins *o, struct known *k)
{
	char cgroup[ORIGIN_CGROUP_BYTES];
	int r;

	if (has_rules(o)) {
		origin_read_cgroup((pid_t)k->pid, &o->ours, cgroup);
		k->cgroup = strdup(cgroup);
		if (!k->cgroup)
			return -ENOMEM;
	}
	r = insert(o, k);
	if (r < 0)
		free(k->cgroup);
	return r;
}

static int look_at(struct origins *o, const struct profile *p, const struct process *process)
{
	const struct origin_process asked = {
		.pid = (pid_t)process->pid,
		.name = strtab_get(p->strings, process->name),
		.command_line = strtab_get(p->strings, process->command_line),
		.container = strtab_get(p->strings, process->container),
		.pod = strtab_get(p->strings, process->pod_uid),
	};
	struct known k = { .pid = process->pid,
			   .start_ns = process->start_ns,
			   .command_hash = hash_string(asked.command_line, 0) };
	uint32_t i = find(o, &k);
	struct pod_names names;
	int r = 0;

	if (i == IDMAP_NONE) {
		origin_find(&asked, o->config->service_env, &o->ours, &k.origin);
		origins_names(o, &k.origin, &names); /* so that it is known in time */
		r = add_known(o, &k);
		i = (uint32_t)o->known.len - 1;
	}
	if (!r)
		r = vec_push(&o->in_window, i);
	if (!r)
		o->known.items[i].is_in_window = true;
	return r;
}

int origins_look(struct origins *o, const struct profile *p)
{
	int r = 0;

	while (o->in_window.len < p->processes.len && !r)
		r = look_at(o, p, &p->processes.items[o->in_window.len]);
	return r;
}

bool origins_names(const struct origins *o, const struct origin *origin, struct pod_names *out)
{
	return kubernetes_find(o->kubernetes, origin->pod, origin->container, out);
}

void origins_get(const struct origins *o, uint32_t process, struct origin *out)
{
	struct pod_names names;

	*out = o->known.items[o->in_window.items[process]].origin;
	if (!out->is_named && origins_names(o, out, &names) && *names.service)
		strncpy(out->service, names.service, sizeof(out->service)); /* to its end */
	out->is_named = true; /* whoever did: origins of one service are equal */
}

int origins_next_window(struct origins *o)
{
	size_t len = o->known.len;
	int r = 0;

	idmap_release(&o->by_process);
	vec_release(&o->in_window);
	o->known.len = 0;
	for (size_t i = 0; i < len; i++) {
		struct known k = o->known.items[i];
		bool is_kept = k.is_in_window && !r;

		k.is_in_window = false;
		if (is_kept)
			r = insert(o, &k);
		if (!is_kept || r < 0)
			free(k.cgroup);
	}
	return r;
}

const char *origins_cgroup(const struct origins *o, uint32_t process)
{
	return o->known.items[o->in_window.items[process]].cgroup ?: "";
}
