/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/page/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "profile/imports.h"
#include "profile/module.h"

#define CONTEXT_LINES 4 /* around a line with samples */

/* One line of a file that is wanted, because of samples or because it is near them. */
struct wanted {
	uint32_t rank; /* of its file: those of heavy functions come first */
	uint32_t file; /* string id */
	uint32_t from, to;
};

struct reading {
	struct sources *sources;
	const struct page *page;
	uint32_t *rank_of; /* by string id of the file: 1 for the heaviest; 0: not wanted */
	VEC(struct wanted) wanted;
	char host[256];
};

static void reading_release(struct reading *r)
{
	free(r->rank_of);
	vec_release(&r->wanted);
}

void sources_release(struct sources *s)
{
	for (size_t i = 0; i < s->pieces.len; i++)
		free(s->pieces.items[i].text);
	vec_release(&s->pieces);
	vec_release(&s->files);
}

/* --- which lines ------------------------------------------------------------------------------ */

static bool is_python_path(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' &&
	       (path_ends_in(path, len, ".py") || path_ends_in(path, len, ".pyw"));
}

/* Functions are in order of weight, so files get theirs by their heaviest function. */
static int rank_files(struct reading *r)
{
	const struct page *page = r->page;
	uint32_t rank = 0;

	r->rank_of = calloc(strtab_count(page->profile->strings) + 1, sizeof(*r->rank_of));
	if (!r->rank_of)
		return -ENOMEM;
	for (size_t i = 1; i < page->functions.len; i++) {
		const struct page_function *f = &page->functions.items[i];

		if (f->kind == FRAME_PYTHON && f->file && !r->rank_of[f->file])
			r->rank_of[f->file] = ++rank;
	}
	return 0;
}

static int want_line(struct reading *r, uint32_t file, uint32_t line)
{
	struct wanted w = {
		.rank = r->rank_of[file],
		.file = file,
		.from = line > CONTEXT_LINES ? line - CONTEXT_LINES : 1,
		.to = line < UINT32_MAX - CONTEXT_LINES ? line + CONTEXT_LINES : UINT32_MAX,
	};

	return line && w.rank ? vec_push(&r->wanted, w) : 0;
}

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* Lines of the current side, and of its defs: of removed code the file has nothing any more. */
static int want_lines(struct reading *r)
{
	const struct profile *p = r->page->profile;
	const struct stack_entry *entries = stacktab_entries(p->stacks);
	const uint32_t *site_of = r->page->site_of[CUBE_CURRENT];
	uint32_t frames = frametab_count(p->frames);
	_cleanup_(freep) bool *is_used = calloc((size_t)frames + 1, sizeof(*is_used));
	int e = 0;

	if (!is_used)
		return -ENOMEM;
	for (size_t i = 1; site_of && i < r->page->stack_count; i++)
		if (site_of[i])
			is_used[entries[i].frame] = true;
	for (uint32_t i = 0; i < frames && !e; i++) {
		const struct frame *f = frametab_get(p->frames, i);

		if (!is_used[i] || f->kind != FRAME_PYTHON)
			continue;
		e = want_line(r, f->file, f->line);
		if (!e)
			e = want_line(r, f->file, f->first_line);
	}
	if (r->wanted.len)
		qsort(r->wanted.items, r->wanted.len, sizeof(*r->wanted.items), compare_wanted);
	return e;
}

/* --- is it the file that was recorded? -------------------------------------------------------- */

/* When the first of the current runs began; 0: not known, or not of all, or on another host. */
static uint64_t recorded_since(const struct reading *r)
{
	const struct page *page = r->page;
	uint64_t start_ns = UINT64_MAX;

	for (size_t i = 0; i < page->cube->runs.len; i++) {
		const struct cube_run *run = &page->cube->runs.items[i];
		const struct recording *of = &page->profile->recordings.items[run->recording];

		if (run->side != CUBE_CURRENT)
			continue;
		if (!of->start_realtime_ns || !of->host || strcmp(of->host, r->host))
			return 0;
		if (of->start_realtime_ns < start_ns)
			start_ns = of->start_realtime_ns;
	}
	return start_ns == UINT64_MAX ? 0 : start_ns;
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

/* Where each line begins; one more: the end. Line 1 is item 0. */
struct line_starts {
	size_t *items;
	size_t len, cap;
};

static int find_lines(const struct strbuf *text, struct line_starts *starts)
{
	int e = vec_push(starts, 0);

	for (size_t i = 0; i < text->len && !e; i++)
		if (text->bytes[i] == '\n')
			e = vec_push(starts, i + 1);
	if (!e && starts->items[starts->len - 1] != text->len)
		e = vec_push(starts, text->len);
	return e;
}

/* Without its end. line: from 1. */
static const char *line_get(const struct strbuf *text, const struct line_starts *starts,
			    uint32_t line, size_t *len)
{
	const char *from = text->bytes + starts->items[line - 1];

	*len = starts->items[line] - starts->items[line - 1];
	while (*len && (from[*len - 1] == '\n' || from[*len - 1] == '\r'))
		--*len;
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

/*
 * Is there a def wherever the page has a function of this file? "<lambda>" and the like have none,
 * nor have modules that are imported.
 */
static bool has_all_defs(const struct reading *r, uint32_t file, const struct strbuf *text,
			 const struct line_starts *starts)
{
	const struct page *page = r->page;

	for (size_t i = 1; i < page->functions.len; i++) {
		const struct page_function *f = &page->functions.items[i];
		const char *name = strtab_get(page->profile->strings, f->name), *line;
		size_t len = strlen(name);

		if (f->file != file || !f->line || !len || name[len - 1] == '>' ||
		    !strncmp(name, IMPORT_PREFIX, strlen(IMPORT_PREFIX)))
			continue;
		if (f->line >= starts->len)
			return false;
		line = line_get(text, starts, f->line, &len);
		if (!begins_def(line, len))
			return false;
	}
	return true;
}

/* --- what is kept ----------------------------------------------------------------------------- */

static int append_line(struct strbuf *out, const char *line, size_t len)
{
	static const char ellipsis[] = "\xe2\x80\xa6";

	if (len <= SOURCE_LINE_BYTES_MAX) {
		strbuf_append(out, line, len);
		return strbuf_putc(out, '\n');
	}
	len = SOURCE_LINE_BYTES_MAX;
	while (len && ((unsigned char)line[len] & 0xc0) == 0x80)
		len--; /* not inside a character */
	strbuf_append(out, line, len);
	strbuf_puts(out, ellipsis);
	return strbuf_putc(out, '\n');
}

static int add_piece(struct reading *r, const struct strbuf *text, const struct line_starts *starts,
		     uint32_t from, uint32_t to)
{
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;
	struct source_piece piece = { .file = (uint32_t)r->sources->files.len - 1, .line = from };
	int e = 0;

	for (uint32_t line = from; line <= to && line < starts->len && !e; line++) {
		size_t len;
		const char *bytes = line_get(text, starts, line, &len);

		e = append_line(&out, bytes, len);
	}
	if (e || !out.len || r->sources->bytes + out.len > SOURCE_TOTAL_BYTES_MAX)
		return e;
	piece.len = out.len;
	piece.text = strbuf_take(&out);
	r->sources->bytes += piece.len;
	e = piece.text ? vec_push(&r->sources->pieces, piece) : -ENOMEM;
	if (e)
		free(piece.text);
	return e;
}

/* All wanted lines of one file; near ones become one piece. */
static int add_pieces(struct reading *r, const struct strbuf *text,
		      const struct line_starts *starts, const struct wanted *w, size_t count)
{
	int e = 0;

	for (size_t i = 0; i < count && !e;) {
		uint32_t from = w[i].from, to = w[i].to;

		for (i++; i < count && w[i].from <= to + 1; i++)
			to = w[i].to > to ? w[i].to : to;
		e = add_piece(r, text, starts, from, to);
	}
	return e;
}

static int add_file(struct reading *r, uint64_t since_ns, const struct wanted *w, size_t count)
{
	_cleanup_(strbuf_releasep) struct strbuf text = STRBUF_INIT;
	const char *path = strtab_get(r->page->profile->strings, w->file);
	struct source_file made = { .file = w->file, .status = SOURCE_UNKNOWN };
	struct line_starts starts = { 0 };
	int e = 0;

	if (since_ns && is_python_path(path))
		made.status = read_file(path, since_ns, &text);
	if (made.status == SOURCE_EMBEDDED)
		e = find_lines(&text, &starts);
	if (!e && made.status == SOURCE_EMBEDDED && !has_all_defs(r, w->file, &text, &starts))
		made.status = SOURCE_CHANGED;
	if (!e)
		e = vec_push(&r->sources->files, made);
	if (!e && made.status == SOURCE_EMBEDDED)
		e = add_pieces(r, &text, &starts, w, count);
	vec_release(&starts);
	return e;
}

int sources_read(struct sources *s, const struct page *page)
{
	_cleanup_(reading_release) struct reading r = { .sources = s, .page = page };
	uint64_t since_ns;
	int e;

	*s = (struct sources){ 0 };
	gethostname(r.host, sizeof(r.host) - 1);
	if ((e = rank_files(&r)) < 0 || (e = want_lines(&r)) < 0)
		return e;
	since_ns = recorded_since(&r);
	for (size_t from = 0, to; from < r.wanted.len && !e; from = to) {
		for (to = from + 1; to < r.wanted.len; to++)
			if (r.wanted.items[to].file != r.wanted.items[from].file)
				break;
		e = add_file(&r, since_ns, &r.wanted.items[from], to - from);
	}
	return e;
}
