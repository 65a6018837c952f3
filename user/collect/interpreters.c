/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/interpreters.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/object.h"
#include "target/offsets.h"

struct interpreter {
	struct py_offsets layout;
	char version[VERSION_TEXT_BYTES];
	char build[ELF_BUILD_TEXT_BYTES];
	const char *implementation;
	char *path; /* owned; NULL: it was never added */
};

struct interpreters {
	pthread_mutex_t lock; /* of whether one is there: what is, does not change */
	struct interpreter items[LAYOUTS_MAX];
};

int interpreters_new(struct interpreters **out)
{
	struct interpreters *is = calloc(1, sizeof(*is));

	if (!is)
		return -ENOMEM;
	pthread_mutex_init(&is->lock, NULL);
	*out = is;
	return 0;
}

void interpreters_free(struct interpreters *is)
{
	if (!is)
		return;
	for (size_t i = 0; i < LAYOUTS_MAX; i++)
		free(is->items[i].path);
	pthread_mutex_destroy(&is->lock);
	free(is);
}

static const char *implementation_of(const struct py_offsets *off)
{
	if (off->is_best_effort)
		return off->is_free_threaded ? "CPython free-threaded, best effort"
					     : "CPython, best effort";
	return off->is_free_threaded ? "CPython free-threaded" : "CPython";
}

static const struct interpreter *find(struct interpreters *is, uint32_t layout)
{
	bool is_there;

	if (layout >= LAYOUTS_MAX)
		return NULL;
	pthread_mutex_lock(&is->lock);
	is_there = is->items[layout].path;
	pthread_mutex_unlock(&is->lock);
	return is_there ? &is->items[layout] : NULL;
}

int interpreters_add(struct interpreters *is, struct session *session, const struct py_runtime *rt)
{
	struct interpreter new = { .layout = rt->offsets,
				   .implementation = implementation_of(&rt->offsets) };
	int layout;

	object_layout_tell(&new.layout);
	layout = session_add_layout(session, &new.layout);
	if (layout < 0 || find(is, (uint32_t)layout))
		return layout;
	version_format(rt->version, new.version);
	memcpy(new.build, rt->build, sizeof(new.build));
	new.path = strdup(rt->path);
	if (!new.path)
		return -ENOMEM;
	pthread_mutex_lock(&is->lock);
	is->items[layout] = new;
	pthread_mutex_unlock(&is->lock);
	if (rt->offsets.is_best_effort)
		log_warning("%s: CPython %s is not a tested version: using the offsets it "
			    "publishes (best effort)",
			    new.path, new.version);
	return layout;
}

const struct py_offsets *interpreters_layout(struct interpreters *is, uint32_t layout)
{
	const struct interpreter *i = find(is, layout);

	return i ? &i->layout : NULL;
}

void interpreters_describe(struct interpreters *is, uint32_t layout, struct interpreter_text *out)
{
	const struct interpreter *i = find(is, layout);

	*out = i ? (struct interpreter_text){ i->version, i->implementation, i->path, i->build }
		 : (struct interpreter_text){ "", "", "", "" };
}
