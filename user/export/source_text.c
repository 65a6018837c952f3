/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/source_text.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "profile/imports.h"
#include "profile/module.h"

void source_since(const struct recording *of, uint64_t *since_ns)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	if (!of->start_realtime_ns || !of->host || strcmp(of->host, host))
		*since_ns = 0;
	else if (of->start_realtime_ns < *since_ns)
		*since_ns = of->start_realtime_ns;
}

void source_text_release(struct source_text *t)
{
	strbuf_release(&t->bytes);
	vec_release(&t->starts);
}

static bool is_python_path(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' &&
	       (path_ends_in(path, len, ".py") || path_ends_in(path, len, ".pyw"));
}

/*
 * The text, or why not. A change of the inode counts as one of the file: a deployment may keep the
 * old modification time.
 */
static enum source_status read_file(const char *path, uint64_t since_ns, struct strbuf *text)
{
	_cleanup_(closep) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return SOURCE_MISSING;
	if (file_check_regular(fd, path, &st) < 0) {
		err_clear(); /* the page says so in its own words */
		return SOURCE_MISSING;
	}
	if (st.st_size > SOURCE_FILE_BYTES_MAX)
		return SOURCE_TOO_LARGE;
	if (timespec_ns(&st.st_mtim) > since_ns || timespec_ns(&st.st_ctim) > since_ns)
		return SOURCE_CHANGED;
	if (strbuf_reserve(text, (size_t)st.st_size) < 0)
		return SOURCE_TOO_LARGE;
	n = file_pread(fd, text->bytes, (size_t)st.st_size, 0);
	if (n < 0)
		return SOURCE_MISSING;
	text->len = (size_t)n;
	return SOURCE_EMBEDDED;
}

static int find_lines(struct source_text *t)
{
	int e = vec_push(&t->starts, 0);

	for (size_t i = 0; i < t->bytes.len && !e; i++)
		if (t->bytes.bytes[i] == '\n')
			e = vec_push(&t->starts, i + 1);
	if (!e && t->starts.items[t->starts.len - 1] != t->bytes.len)
		e = vec_push(&t->starts, t->bytes.len);
	return e;
}

int source_text_read(struct source_text *t, const char *path, uint64_t since_ns,
		     enum source_status *status)
{
	*status = SOURCE_UNKNOWN;
	if (since_ns && is_python_path(path))
		*status = read_file(path, since_ns, &t->bytes);
	return *status == SOURCE_EMBEDDED ? find_lines(t) : 0;
}

const char *source_text_line(const struct source_text *t, uint32_t line, size_t *len, bool *is_cut)
{
	const char *from = t->bytes.bytes + t->starts.items[line - 1];

	*len = t->starts.items[line] - t->starts.items[line - 1];
	while (*len && (from[*len - 1] == '\n' || from[*len - 1] == '\r'))
		--*len;
	*is_cut = *len > SOURCE_LINE_BYTES_MAX;
	if (*is_cut)
		*len = SOURCE_LINE_BYTES_MAX;
	while (*is_cut && *len && ((unsigned char)from[*len] & 0xc0) == 0x80)
		--*len; /* not inside a character */
	return from;
}

static bool begins_def(const char *line, size_t len)
{
	static const char *const words[] = { "def ", "async ", "class ", "@" };

	for (; len && (*line == ' ' || *line == '\t' || *line == '\f'); len--)
		line++;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (len >= strlen(words[i]) && !memcmp(line, words[i], strlen(words[i])))
			return true;
	return false;
}

bool source_text_has_def(const struct source_text *t, const char *name, uint32_t line)
{
	size_t len = strlen(name);
	const char *text;
	bool is_cut;

	if (!line || !len || name[len - 1] == '>' ||
	    !strncmp(name, IMPORT_PREFIX, strlen(IMPORT_PREFIX)))
		return true;
	if (line > source_text_lines(t))
		return false;
	text = source_text_line(t, line, &len, &is_cut);
	return begins_def(text, len);
}
