/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/environment.h"

#include <errno.h>

#include "target/environment.h"

/* Nothing is unknown. */
static int set_text(char **text, const struct strbuf *found)
{
	if (strbuf_error(found))
		return -ENOMEM;
	return found->len ? recording_set_text(text, strbuf_str(found)) : 0;
}

int environment_describe(struct recording *m, pid_t target)
{
	_cleanup_(strbuf_releasep) struct strbuf cpu = STRBUF_INIT, governor = STRBUF_INIT,
						 seed = STRBUF_INIT, allocator = STRBUF_INIT;
	int r;

	if ((r = environment_put_cpu(&cpu)) < 0 || (r = environment_put_governor(&governor)) < 0 ||
	    (r = target ? environment_put_python(target, &seed, &allocator) : 0) < 0 ||
	    (r = set_text(&m->cpu_model, &cpu)) < 0 ||
	    (r = set_text(&m->governor, &governor)) < 0 || (r = set_text(&m->hash_seed, &seed)) < 0)
		return r;
	return set_text(&m->allocator, &allocator);
}

/* Of all processes, if they ran one file that is ours to see as well; else NULL. */
static const char *only_executable(const struct profile *p)
{
	uint32_t found = 0;

	for (size_t i = 0; i < p->processes.len; i++) {
		const struct process *process = &p->processes.items[i];

		if (!process->executable || process_has_place(process) ||
		    (found && found != process->executable))
			return NULL;
		found = process->executable;
	}
	return found ? strtab_get(p->strings, found) : NULL;
}

int environment_complete(struct profile *p)
{
	_cleanup_(strbuf_releasep) struct strbuf build = STRBUF_INIT;
	const char *path = only_executable(p);
	int r = path ? environment_put_build(path, &build) : 0;

	return r < 0 ? r : set_text(&profile_recording(p)->build, &build);
}
