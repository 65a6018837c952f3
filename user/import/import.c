/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/import.h"

#include <string.h>

#include "base/err.h"
#include "base/file.h"

/* Text comes last, and of it collapsed stacks: they know the least about themselves. */
const struct importer *const importers[] = { &importer_tachyon,   &importer_mojo,
					     &importer_pprof,     &importer_speedscope,
					     &importer_austin,    &importer_perf,
					     &importer_collapsed, NULL };

const char *const import_words[] = { "auto",   "tachyon", "mojo",      "pprof", "speedscope",
				     "austin", "perf",    "collapsed", NULL };

struct import {
	const struct importer *importer;
	void *reader;
	struct content *content;
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
	content_free(i->content);
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

/* Errors beyond are of what is packed: places are there, and not in the file. */
static int wrap(const struct import *i, int r)
{
	if (i->content && content_is_packed(i->content))
		r = err_wrap(r, "unpacked");
	return err_wrap(r, "%s", i->path);
}

/* 1; 0: nobody knows it. */
static int open_reader(struct import *i, const struct importer *as)
{
	_cleanup_(freep) char *head = malloc(IMPORT_HEAD_BYTES);
	ssize_t n;
	int r;

	if (!head)
		return -ENOMEM;
	n = content_pread(i->content, head, IMPORT_HEAD_BYTES, 0);
	if (n <= 0)
		return (int)n;
	i->importer = as ? as : recognise(head, (size_t)n);
	if (!i->importer)
		return 0;
	r = i->importer->open(i->content, &i->facts, &i->reader);
	return r < 0 ? r : 1;
}

int import_open(const char *path, struct import_choice choice, struct import **out)
{
	_cleanup_(import_freep) struct import *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return -ENOMEM;
	i->fd = -1;
	i->path = strdup(path);
	if (!i->path)
		return -ENOMEM;
	i->fd = file_open_regular(path, NULL);
	if (i->fd < 0)
		return i->fd;
	r = content_open(i->fd, &i->content);
	if (r < 0)
		return wrap(i, r);
	if (choice.is_trusted)
		content_trust(i->content);
	r = open_reader(i, import_chosen(choice));
	if (r < 0)
		return wrap(i, r);
	if (r)
		*out = take_ptr(i);
	return r;
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

	content_fills(i->content, p);
	if (!r)
		r = i->importer->next(i->reader, p, &i->facts);
	return r < 0 ? wrap(i, r) : r;
}

const struct import_facts *import_facts(const struct import *i)
{
	return &i->facts;
}

const char *import_format(const struct import *i)
{
	return i->importer->name;
}
