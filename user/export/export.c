/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/export.h"

#include <string.h>

#include "base/file.h"

const struct exporter *const exporters[] = {
	&exporter_collapsed, &exporter_pprof, &exporter_otlp, &exporter_html, &exporter_json, NULL,
};

const struct exporter *exporter_find(const char *name)
{
	for (const struct exporter *const *e = exporters; *e; e++)
		if (!strcmp((*e)->name, name))
			return *e;
	return NULL;
}

const struct exporter *exporter_for_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t len = strlen(base);

	for (const struct exporter *const *e = exporters; *e; e++)
		for (const char *const *s = (*e)->suffixes; *s; s++)
			if (len > strlen(*s) && !strcmp(base + len - strlen(*s), *s))
				return *e;
	return NULL;
}

unsigned int exporter_axes(const struct exporter *e, const struct export_opts *o)
{
	return e->axes | (o->threads || o->processes ? CUBE_THREADS : 0);
}

int exporter_write(const struct exporter *e, const struct profile *p, const struct cube *c,
		   const struct export_opts *o, const char *path)
{
	_cleanup_(atomic_file_freep) struct atomic_file *f = NULL;
	int r;

	r = atomic_file_open(path, &f);
	if (r < 0)
		return r;
	r = e->write(p, c, o, atomic_file_stream(f));
	return r < 0 ? r : atomic_file_commit(f);
}
