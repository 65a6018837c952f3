/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/import.h"

#include <string.h>

#include "base/err.h"
#include "base/file.h"

/* Text comes last: it knows the least about itself. */
const struct importer *const importers[] = { &importer_tachyon, &importer_collapsed, NULL };

struct import {
	const struct importer *importer;
	void *reader;
	int fd;
	char *path;
	struct import_facts facts;
	bool has_joined; /* a profile */
};

void import_free(struct import *i)
{
	if (!i)
		return;
	if (i->reader)
		i->importer->free(i->reader);
	closep(&i->fd);
	free(i->path);
	recording_release(&i->facts.recording);
	free(i);
}

static const struct importer *recognise(const char *head, size_t len)
{
	for (const struct importer *const *i = importers; *i; i++)
		if ((*i)->sniff(head, len))
			return *i;
	return NULL;
}

int import_open(const char *path, struct import **out)
{
	_cleanup_(import_freep) struct import *i = calloc(1, sizeof(*i));
	_cleanup_(freep) char *head = malloc(IMPORT_HEAD_BYTES);
	ssize_t n;
	int r;

	if (!i)
		return -ENOMEM;
	i->fd = -1;
	i->path = strdup(path);
	if (!head || !i->path)
		return -ENOMEM;
	i->fd = file_open_regular(path, NULL);
	if (i->fd < 0)
		return i->fd;
	n = file_pread(i->fd, head, IMPORT_HEAD_BYTES, 0);
	if (n < 0)
		return err_set((int)n, "%s: %s", path, strerror((int)-n));
	i->importer = n ? recognise(head, (size_t)n) : NULL;
	if (!i->importer)
		return 0;
	r = i->importer->open(i->fd, &i->facts, &i->reader);
	if (r < 0)
		return err_wrap(r, "%s", path);
	*out = take_ptr(i);
	return 1;
}

static int join(struct import *i, struct profile *p)
{
	int r = profile_begin_recording(p, &i->facts.index);

	if (!r)
		r = recording_copy(&p->recordings.items[i->facts.index], &i->facts.recording);
	i->has_joined = !r;
	return r;
}

int import_next(struct import *i, struct profile *p)
{
	int r = i->has_joined ? 0 : join(i, p);

	if (!r)
		r = i->importer->next(i->reader, p, &i->facts);
	return r < 0 ? err_wrap(r, "%s", i->path) : r;
}

const struct import_facts *import_facts(const struct import *i)
{
	return &i->facts;
}

const char *import_format(const struct import *i)
{
	return i->importer->name;
}
