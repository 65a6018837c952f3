/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/export.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/units.h"

const struct exporter *const exporters[] = {
	&exporter_collapsed,  &exporter_pprof,
	&exporter_otlp,       &exporter_html,
	&exporter_svg,        &exporter_heatmap,
	&exporter_speedscope, &exporter_gecko,
	&exporter_perfetto,   &exporter_pstats,
	&exporter_json,       &exporter_jsonl,
	&exporter_script,     NULL,
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
	return (e->needs & ~(EXPORT_NEEDS_SAMPLES | EXPORT_NEEDS_GIL | EXPORT_FOLDS_IMPORTS |
			     EXPORT_OF_ONE_KIND | EXPORT_OF_FOLDERS)) |
	       (o->threads || o->processes ? CUBE_THREADS : 0) | (o->labels ? CUBE_LABELS : 0);
}

bool export_leaves_out(const struct export_opts *o, const struct profile *p,
		       const struct label_entry *label)
{
	const char *name = strtab_get(p->strings, label->name);

	for (const char *const *s = o->left_out; s && *s; s++)
		if (!strcmp(*s, name))
			return true;
	return false;
}

int exporter_write(const struct exporter *e, const struct profile *p, const struct cube *c,
		   const struct export_opts *o, FILE *out)
{
	return e->finish(&(struct exporting){ .p = p, .cube = c, .o = o, .out = out });
}

/* At the first samples: what has none leaves no file. */
static int begin(struct export_file *f, const struct profile *p)
{
	const struct exporter *e = f->exporter;
	int r = exporter_makes_folders(e) ? folder_open(f->path, e->mark, e->is_own, &f->x.folder)
					  : atomic_file_open(f->path, &f->file);

	if (r < 0)
		return r;
	if (f->max_bytes && f->file)
		atomic_file_limit(f->file, f->max_bytes);
	else if (f->max_bytes)
		folder_limit(f->x.folder, f->max_bytes);
	f->has_begun = true;
	f->x.p = p;
	f->x.out = f->file ? atomic_file_stream(f->file) : NULL;
	return f->exporter->begin ? f->exporter->begin(&f->x) : 0;
}

uint64_t export_bytes_max(uint64_t input_bytes)
{
	uint64_t max;

	return __builtin_mul_overflow(input_bytes, EXPORT_RATIO_MAX, &max) ||
			       __builtin_add_overflow(max, EXPORT_BASE_BYTES, &max)
		       ? UINT64_MAX
		       : max;
}

int export_too_large(const char *path, uint64_t max_bytes)
{
	return err_set(-E2BIG,
		       "%s: it would be more than %s, which is %s and %u times the bytes of what "
		       "is read; if you trust that, give --trust",
		       strcmp(path, "-") ? path : "standard output", units_bytes(max_bytes).s,
		       units_bytes(EXPORT_BASE_BYTES).s, EXPORT_RATIO_MAX);
}

/* r: what the exporter returned. Other errors of the stream are atomic_file_commit()'s to say. */
static int check_size(const struct export_file *f, int r)
{
	if (f->file) {
		fflush(f->x.out);
		r = atomic_file_error(f->file) == -E2BIG ? -E2BIG : r;
	}
	return r == -E2BIG ? export_too_large(f->path, f->max_bytes) : r;
}

int export_file_take(struct export_file *f, const struct profile *p)
{
	int r = f->has_begun || !p->samples.len ? 0 : begin(f, p);

	if (r < 0 || !p->samples.len)
		return r;
	return check_size(f, f->exporter->take(&f->x));
}

int export_file_finish(struct export_file *f, const struct profile *p, const struct cube *c)
{
	int r = f->has_begun ? 0 : begin(f, p);

	f->x.cube = c;
	if (!r)
		r = check_size(f, f->exporter->finish(&f->x));
	if (r < 0)
		return r;
	return f->file ? atomic_file_commit(f->file) : folder_commit(f->x.folder);
}

void export_file_release(struct export_file *f)
{
	if (f->exporter->release)
		f->exporter->release(&f->x);
	atomic_file_free(f->file);
	folder_free(f->x.folder);
}
