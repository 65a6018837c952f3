/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/diff_export.h"

#include <string.h>

#include "base/file.h"
#include "export/export.h"

const struct diff_exporter *const diff_exporters[] = {
	&diff_exporter_json, &diff_exporter_markdown, &diff_exporter_junit,
	&diff_exporter_html, &diff_exporter_svg,      NULL,
};

const struct diff_exporter *diff_exporter_for_path(const char *path)
{
	size_t len = strlen(path);

	for (const struct diff_exporter *const *e = diff_exporters; *e; e++) {
		size_t suffix_len = strlen((*e)->suffix);

		if (len > suffix_len && !strcmp(path + len - suffix_len, (*e)->suffix))
			return *e;
	}
	return NULL;
}

int diff_exporter_write(const struct diff_exporter *e, const struct diff_report *r,
			const char *path, uint64_t max_bytes)
{
	_cleanup_(atomic_file_freep) struct atomic_file *f = NULL;
	int e_write = atomic_file_open(path, &f);

	if (e_write < 0)
		return e_write;
	if (max_bytes)
		atomic_file_limit(f, max_bytes);
	e_write = e->write(r, atomic_file_stream(f));
	if (!e_write || atomic_file_error(f)) /* then that says why */
		e_write = atomic_file_commit(f);
	return e_write == -E2BIG ? export_too_large(path, max_bytes) : e_write;
}
