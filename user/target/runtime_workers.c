/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/runtime_workers.h"

#include "base/workers.h"
#include "target/interpreter_file.h"

static int new_cache(void **context)
{
	struct runtime_cache *cache;
	int r = runtime_cache_new(&cache);

	if (!r)
		*context = cache;
	return r;
}

static void free_cache(void *context)
{
	runtime_cache_free(context);
}

int runtime_workers_new(struct workers **out)
{
	const struct workers_kind kind = { .context_new = new_cache,
					   .context_free = free_cache,
					   .is_urgent = true };

	return workers_new(&kind, out);
}
