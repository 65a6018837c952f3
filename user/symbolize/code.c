/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "symbolize/linetable.h"

#define BUCKETS_MIN 256
#define USES_MAX 3
#define MALLOC_OVERHEAD 16 /* glibc, 64 bits: header and rounding of one block */
#define TEXT_BYTES_MAX PYSTRING_UTF8_BYTES(STRING_BYTES_MAX)

/* Bytes of a line table that have come. Pieces of one table neither touch nor overlap. */
struct piece {
	struct piece *next; /* by offset */
	uint32_t offset, len;
	uint8_t bytes[];
};

/* One allocation with its text. Pieces are held until the table is whole. */
struct entry {
	struct code code;   /* first: code_line() goes from there to here */
	struct entry *next; /* in the bucket */
	uint64_t process;
	uint64_t lines_addr; /* in the target */
	struct lines lines;
	struct piece *pieces;
	uint32_t lines_total;
	uint32_t bytes; /* what stats.bytes counts for it */
	uint32_t pid;
	uint8_t uses;  /* code_find() counts up to USES_MAX, the hand of the clock down */
	bool is_fresh; /* added or found since the last code_table_retain() */
	char text[];   /* name, NUL, file, NUL */
};

struct code_table {
	struct entry **buckets;
	size_t bucket_count; /* power of two */
	size_t hand;         /* bucket at which the next eviction starts */
	size_t bytes_max;
	uint64_t seed; /* targets choose what identities are made of */
	struct code_stats stats;
	void (*forgotten)(void *arg, uint64_t identity); /* NULL: nobody is told */
	void *arg;
};

DEFINE_CLEANUP(struct code_table *, code_table_free)

static void pieces_free(struct entry *e)
{
	struct piece *next;

	for (struct piece *p = e->pieces; p; p = next) {
		next = p->next;
		free(p);
	}
	e->pieces = NULL;
}

static void entry_free(struct entry *e)
{
	pieces_free(e);
	lines_release(&e->lines);
	free(e);
}

int code_table_new(size_t bytes_max, struct code_table **out)
{
	_cleanup_(code_table_freep) struct code_table *t = NULL;

	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->buckets = calloc(BUCKETS_MIN, sizeof(*t->buckets));
	if (!t->buckets)
		return -ENOMEM;
	t->bucket_count = BUCKETS_MIN;
	t->bytes_max = bytes_max;
	t->stats.bytes = BUCKETS_MIN * sizeof(*t->buckets);
	/* Early in boot there may be none yet: then the address of the table has to do. */
	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) != sizeof(t->seed))
		t->seed = hash_u64((uintptr_t)t);

	*out = take_ptr(t);
	return 0;
}

void code_table_tell(struct code_table *t, void (*forgotten)(void *arg, uint64_t identity),
		     void *arg)
{
	t->forgotten = forgotten;
	t->arg = arg;
}

void code_table_free(struct code_table *t)
{
	struct entry *next;

	if (!t)
		return;
	for (size_t i = 0; i < t->bucket_count; i++) {
		for (struct entry *e = t->buckets[i]; e; e = next) {
			next = e->next;
			entry_free(e);
		}
	}
	free(t->buckets);
	free(t);
}

static struct entry **bucket_of(const struct code_table *t, uint64_t identity)
{
	return &t->buckets[hash_combine(t->seed, identity) & (t->bucket_count - 1)];
}

/* The link that points to the entry, or the one at the end of its bucket. */
static struct entry **link_find(const struct code_table *t, uint64_t identity)
{
	struct entry **link = bucket_of(t, identity);

	while (*link && (*link)->code.identity != identity)
		link = &(*link)->next;
	return link;
}

static void link_remove(struct code_table *t, struct entry **link)
{
	struct entry *e = *link;

	*link = e->next;
	t->stats.codes--;
	t->stats.bytes -= e->bytes;
	entry_free(e);
}

static void link_forget(struct code_table *t, struct entry **link)
{
	uint64_t identity = (*link)->code.identity;

	link_remove(t, link);
	if (t->forgotten)
		t->forgotten(t->arg, identity);
}

/* One entry a bucket on average. Without memory the buckets just get longer. */
static void grow(struct code_table *t)
{
	size_t count = t->bucket_count, bytes = count * sizeof(*t->buckets);
	struct entry **old = t->buckets, **buckets, **link, *e;

	if (t->stats.codes < count)
		return;
	buckets = calloc(2 * count, sizeof(*buckets));
	if (!buckets)
		return;
	t->buckets = buckets;
	t->bucket_count = 2 * count;
	t->stats.bytes += bytes;
	for (size_t i = 0; i < count; i++) {
		while ((e = old[i])) {
			old[i] = e->next;
			link = bucket_of(t, e->code.identity);
			e->next = *link;
			*link = e;
		}
	}
	free(old);
}

/* Recounts what e holds. */
static void account(struct code_table *t, struct entry *e)
{
	size_t bytes = sizeof(*e) + e->code.name_len + e->code.file_len + 2 + MALLOC_OVERHEAD;

	if (e->lines.capacity)
		bytes += lines_bytes(&e->lines) + MALLOC_OVERHEAD;
	for (const struct piece *p = e->pieces; p; p = p->next)
		bytes += sizeof(*p) + p->len + MALLOC_OVERHEAD;
	t->stats.bytes += bytes - e->bytes;
	e->bytes = (uint32_t)bytes;
}

/*
 * A clock that counts: the hand takes one use from each entry it passes and forgets those that have
 * none left. So a code object seen in one sample goes before one that is in every sample.
 */
static void evict(struct code_table *t, const struct entry *keep)
{
	struct entry **link;

	while (t->stats.bytes > t->bytes_max && t->stats.codes > 1) {
		link = &t->buckets[t->hand];
		t->hand = (t->hand + 1) & (t->bucket_count - 1);
		while (*link) {
			if (*link != keep && !(*link)->uses) {
				link_forget(t, link);
				t->stats.evicted++;
				continue;
			}
			if ((*link)->uses)
				(*link)->uses--;
			link = &(*link)->next;
		}
	}
}

/* Name or file of a code object: s points to buffer or is borrowed. */
struct text {
	const char *s;
	uint32_t len;
	bool is_missing, is_cut;
	char buffer[TEXT_BYTES_MAX];
};

static void text_take(struct text *text, const struct pystring *from)
{
	struct pystring s = *from;
	ssize_t len;

	if (s.len > STRING_BYTES_MAX) {
		s.len = STRING_BYTES_MAX;
		s.is_cut = true;
	}
	len = pystring_utf8(&s, text->buffer, sizeof(text->buffer));
	text->is_missing = len < 0;
	text->is_cut = len >= 0 && s.is_cut;
	text->s = len < 0 ? CODE_UNKNOWN : text->buffer;
	text->len = len < 0 ? sizeof(CODE_UNKNOWN) - 1 : (uint32_t)len;
}

static void text_keep(struct text *text, const char *s, uint32_t len, bool is_cut)
{
	text->s = s;
	text->len = len;
	text->is_missing = false;
	text->is_cut = is_cut;
}

static struct entry *entry_new(const struct code_desc *d, const struct text *name,
			       const struct text *file)
{
	struct entry *e = calloc(1, sizeof(*e) + name->len + file->len + 2);

	if (!e)
		return NULL;
	e->is_fresh = true;
	e->process = d->process;
	e->lines_addr = d->lines_addr;
	e->pid = d->pid;
	memcpy(e->text, name->s, name->len);
	memcpy(e->text + name->len + 1, file->s, file->len);
	e->code = (struct code){
		.identity = d->identity,
		.name = e->text,
		.file = e->text + name->len + 1,
		.name_len = name->len,
		.file_len = file->len,
		.first_line = d->first_line > 0 ? d->first_line : 1,
		.flags = (name->is_missing ? CODE_NAME_MISSING : 0) |
			 (file->is_missing ? CODE_FILE_MISSING : 0) |
			 (name->is_cut ? CODE_NAME_CUT : 0) | (file->is_cut ? CODE_FILE_CUT : 0),
	};
	return e;
}

/* The line table: the one that is being put together, else the one described. */
static void entry_take_lines(struct entry *e, const struct code_desc *d, struct entry *old)
{
	if (old && !(old->code.flags & CODE_LINES_MISSING)) {
		e->lines = old->lines;
		e->lines_total = old->lines_total;
		e->pieces = take_ptr(old->pieces);
		old->lines.ranges = NULL;
		return;
	}
	lines_init(&e->lines, d->format, d->first_line);
	e->lines_total = d->lines_total;
	if (d->lines_total > LINETABLE_BYTES_MAX)
		e->code.flags |= CODE_LINES_MISSING;
}

/* Decodes what has come of the table from its start on. */
static int decode(struct code_table *t, struct entry *e)
{
	const struct piece *first = e->pieces;
	int r = 0;

	if (e->lines_total == 0)
		r = lines_extend(&e->lines, NULL, 0, 0);
	else if (first && first->offset == 0)
		r = lines_extend(&e->lines, first->bytes, first->len, e->lines_total);
	if (r == -ENOMEM)
		return r;
	if (r == -EBADMSG)
		t->stats.torn_tables++;
	if (e->lines.state != LINES_PARTIAL)
		pieces_free(e);
	return 0;
}

int code_table_add(struct code_table *t, const struct code_desc *d)
{
	struct entry **link, *e, *old;
	struct text name, file;

	if (d->format != LINES_LNOTAB && d->format != LINES_DELTAS && d->format != LINES_LOCATIONS)
		return err_set(-EINVAL, "code object: line table of format %d", (int)d->format);

	link = link_find(t, d->identity);
	old = *link;
	if (old &&
	    !(old->code.flags & (CODE_NAME_MISSING | CODE_FILE_MISSING | CODE_LINES_MISSING))) {
		old->code.flags &= ~CODE_LINES_LOST; /* it was there a moment ago */
		old->process = d->process;
		old->pid = d->pid;
		old->is_fresh = true;
		t->stats.duplicates++;
		return 0;
	}

	text_take(&name, &d->name);
	text_take(&file, &d->file);
	if (old && !(old->code.flags & CODE_NAME_MISSING))
		text_keep(&name, old->code.name, old->code.name_len,
			  old->code.flags & CODE_NAME_CUT);
	if (old && !(old->code.flags & CODE_FILE_MISSING))
		text_keep(&file, old->code.file, old->code.file_len,
			  old->code.flags & CODE_FILE_CUT);
	e = entry_new(d, &name, &file);
	if (!e)
		return -ENOMEM;
	entry_take_lines(e, d, old);

	if (old) {
		e->uses = old->uses;
		link_remove(t, link);
		t->stats.duplicates++;
	} else {
		t->stats.added++;
	}
	e->next = *link;
	*link = e;
	t->stats.codes++;
	/* An empty table ends here. Without memory for that, its lines are the def line. */
	decode(t, e);
	account(t, e);
	grow(t);
	evict(t, e);
	return 0;
}

static uint32_t piece_end(const struct piece *p)
{
	return p->offset + p->len;
}

/* Joins the bytes with the pieces they touch or overlap. len > 0, inside the table. */
static int piece_add(struct entry *e, uint32_t offset, const uint8_t *bytes, uint32_t len)
{
	uint32_t start = offset, end = offset + len;
	struct piece **link = &e->pieces, *joined, *p, *behind;

	while (*link && piece_end(*link) < offset)
		link = &(*link)->next;
	if (*link && (*link)->offset <= offset && piece_end(*link) >= end)
		return 0; /* a duplicate */

	for (p = *link; p && p->offset <= offset + len; p = p->next) {
		start = p->offset < start ? p->offset : start;
		end = piece_end(p) > end ? piece_end(p) : end;
	}
	behind = p;
	joined = malloc(sizeof(*joined) + (end - start));
	if (!joined)
		return -ENOMEM;
	joined->offset = start;
	joined->len = end - start;
	memcpy(joined->bytes + (offset - start), bytes, len);
	while ((p = *link) != behind) {
		memcpy(joined->bytes + (p->offset - start), p->bytes, p->len);
		*link = p->next;
		free(p);
	}
	joined->next = behind;
	*link = joined;
	return 0;
}

int code_table_add_lines(struct code_table *t, uint64_t identity, uint32_t offset,
			 const uint8_t *bytes, size_t len)
{
	struct entry *e = *link_find(t, identity);
	int r;

	if (!e) {
		t->stats.unknown_pieces++;
		return -ENOENT;
	}
	if (e->code.flags & CODE_LINES_MISSING)
		return -ENODATA;
	if (offset > e->lines_total || len > e->lines_total - offset) {
		t->stats.rejected_pieces++;
		return -EBADMSG;
	}
	if (len == 0 || e->lines.state != LINES_PARTIAL)
		return 0;

	r = piece_add(e, offset, bytes, (uint32_t)len);
	if (r == 0)
		r = decode(t, e);
	account(t, e);
	evict(t, e);
	return r;
}

void code_table_retain(struct code_table *t, bool (*is_wanted)(void *arg, uint64_t process),
		       void *arg)
{
	for (size_t i = 0; i < t->bucket_count; i++) {
		struct entry **link = &t->buckets[i];

		while (*link) {
			if (!is_wanted(arg, (*link)->process) && !(*link)->is_fresh) {
				link_forget(t, link);
				continue;
			}
			(*link)->is_fresh = false;
			link = &(*link)->next;
		}
	}
}

const struct code *code_find(struct code_table *t, uint64_t identity)
{
	struct entry *e = *link_find(t, identity);

	if (!e)
		return NULL;
	if (e->uses < USES_MAX)
		e->uses++;
	e->is_fresh = true;
	return &e->code;
}

int code_line(const struct code *c, uint32_t instr, enum line_state *state)
{
	const struct entry *e = (const struct entry *)c;
	int line = lines_find(&e->lines, instr);

	/* A table that is missing has no range: every instruction is still to come. */
	if (line >= 0)
		*state = LINE_EXACT;
	else
		*state = line == -ENODATA && !(c->flags & CODE_LINES_MISSING) ? LINE_TO_COME
									      : LINE_UNKNOWN;
	return line > 0 ? line : c->first_line;
}

bool code_lines_rest(const struct code *c, struct code_lines *out)
{
	const struct entry *e = (const struct entry *)c;
	const struct piece *first = e->pieces && !e->pieces->offset ? e->pieces : NULL;

	if (e->lines.state != LINES_PARTIAL || c->flags & CODE_LINES_MISSING)
		return false;
	*out = (struct code_lines){ .process = e->process,
				    .addr = e->lines_addr,
				    .pid = e->pid,
				    .bytes = e->lines_total,
				    .seen_bytes = first ? first->len : 0,
				    .seen = first ? first->bytes : NULL };
	return true;
}

void code_table_lose_lines(struct code_table *t, uint64_t identity)
{
	struct entry *e = *link_find(t, identity);

	if (e)
		e->code.flags |= CODE_LINES_LOST;
}

const struct code_stats *code_table_stats(const struct code_table *t)
{
	return &t->stats;
}
