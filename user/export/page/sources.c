/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/page/sources.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

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
	bool *is_used;     /* by frame, of the current side */
	VEC(struct wanted) wanted;
};

static void reading_release(struct reading *r)
{
	free(r->rank_of);
	free(r->is_used);
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
	bool *is_used = calloc((size_t)frames + 1, sizeof(*is_used));
	int e = 0;

	r->is_used = is_used;
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

/* --- the recordings whose files are shown ------------------------------------------------------
 */

/* By index: those of the current side. */
static bool *shown_recordings(const struct page *page)
{
	bool *shown = calloc(page->profile->recordings.len + 1, sizeof(*shown));

	for (size_t i = 0; shown && i < page->cube->runs.len; i++) {
		const struct cube_run *run = &page->cube->runs.items[i];

		shown[run->recording] |= run->side == CUBE_CURRENT;
	}
	return shown;
}

/* --- what is kept ----------------------------------------------------------------------------- */

static int append_line(struct strbuf *out, const struct source_text *text, uint32_t line)
{
	size_t len;
	bool is_cut;
	const char *bytes = source_text_line(text, line, &len, &is_cut);

	strbuf_append(out, bytes, len);
	if (is_cut)
		strbuf_puts(out, "\xe2\x80\xa6"); /* an ellipsis */
	return strbuf_putc(out, '\n');
}

static int add_piece(struct reading *r, const struct source_text *text, uint32_t from, uint32_t to)
{
	_cleanup_(strbuf_releasep) struct strbuf out = STRBUF_INIT;
	struct source_piece piece = { .file = (uint32_t)r->sources->files.len - 1, .line = from };
	int e = 0;

	for (uint32_t line = from; line <= to && line <= source_text_lines(text) && !e; line++)
		e = append_line(&out, text, line);
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
static int add_pieces(struct reading *r, const struct source_text *text, const struct wanted *w,
		      size_t count)
{
	int e = 0;

	for (size_t i = 0; i < count && !e;) {
		uint32_t from = w[i].from, to = w[i].to;

		for (i++; i < count && w[i].from <= to + 1; i++)
			to = w[i].to > to ? w[i].to : to;
		e = add_piece(r, text, from, to);
	}
	return e;
}

static int add_file(struct reading *r, struct source_reader *reader, const struct wanted *w,
		    size_t count)
{
	_cleanup_(source_text_release) struct source_text text = { 0 };
	enum source_status status;
	int e = source_reader_read(reader, w->file, &text, &status);

	if (!e)
		e = vec_push(&r->sources->files,
			     ((struct source_file){ .file = w->file, .status = (uint8_t)status }));
	if (!e && status == SOURCE_EMBEDDED)
		e = add_pieces(r, &text, w, count);
	return e;
}

int sources_read(struct sources *s, const struct page *page, const char *root)
{
	_cleanup_(reading_release) struct reading r = { .sources = s, .page = page };
	_cleanup_(source_reader_freep) struct source_reader *reader = NULL;
	_cleanup_(freep) bool *recordings = shown_recordings(page);
	struct source_uses uses = { .p = page->profile, .recordings = recordings, .root = root };
	int e;

	*s = (struct sources){ 0 };
	if (!recordings)
		return -ENOMEM;
	if ((e = rank_files(&r)) < 0 || (e = want_lines(&r)) < 0)
		return e;
	uses.frames = r.is_used;
	e = source_reader_new(&uses, &reader);
	for (size_t from = 0, to; from < r.wanted.len && !e; from = to) {
		for (to = from + 1; to < r.wanted.len; to++)
			if (r.wanted.items[to].file != r.wanted.items[from].file)
				break;
		e = add_file(&r, reader, &r.wanted.items[from], to - from);
	}
	return e;
}
