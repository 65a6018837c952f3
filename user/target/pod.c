/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/pod.h"

#include <dirent.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

DEFINE_CLEANUP(DIR *, closedir)

void pod_take_text(const char *text, size_t len, char *out, size_t size)
{
	bool is_plain = true;

	for (size_t i = 0; i < len && is_plain;)
		i += utf8_next_plain(text + i, len - i, &is_plain);
	if (!is_plain || len >= size)
		len = 0;
	memcpy(out, text, len);
	out[len] = '\0';
}

bool pod_name_of_folder(const char *folder, struct pod_name *out)
{
	const char *first = strchr(folder, '_'), *last = strrchr(folder, '_');

	*out = (struct pod_name){ 0 };
	if (!first || first == last || strchr(first + 1, '_') != last)
		return false; /* neither names nor uid have one */
	pod_take_text(folder, (size_t)(first - folder), out->space, sizeof(out->space));
	pod_take_text(first + 1, (size_t)(last - first - 1), out->name, sizeof(out->name));
	pod_take_text(last + 1, strlen(last + 1), out->uid, sizeof(out->uid));
	return *out->space && *out->name && *out->uid;
}

bool pod_name_find(const char *directory, const char *uid, struct pod_name *out)
{
	_cleanup_(closedirp) DIR *dir = opendir(directory);
	struct pod_name found;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (!pod_name_of_folder(entry->d_name, &found) || strcmp(found.uid, uid) != 0)
			continue;
		*out = found;
		return true;
	}
	return false;
}
