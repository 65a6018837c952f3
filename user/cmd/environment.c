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
