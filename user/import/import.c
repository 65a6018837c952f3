/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "import/import.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

const struct importer *const importers[] = { &importer_collapsed, NULL };

static const struct importer *recognise(const char *head, size_t len)
{
	for (const struct importer *const *i = importers; *i; i++)
		if ((*i)->sniff(head, len))
			return *i;
	return NULL;
}

int import_file(const char *path, struct profile *p, struct import_facts *facts)
{
	_cleanup_(freep) char *head = malloc(IMPORT_HEAD_BYTES);
	_cleanup_(closep) int fd = -1;
	const struct importer *importer;
	ssize_t n;
	int r;

	if (!head)
		return -ENOMEM;
	fd = file_open_regular(path, NULL);
	if (fd < 0)
		return fd;
	n = file_pread(fd, head, IMPORT_HEAD_BYTES, 0);
	if (n < 0)
		return err_set((int)n, "%s: %s", path, strerror((int)-n));
	importer = n ? recognise(head, (size_t)n) : NULL;
	if (!importer)
		return 0;
	r = importer->read(fd, p, facts);
	return r < 0 ? err_wrap(r, "%s", path) : 1;
}
