/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/titles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/varint.h"

#define CHUNK_BYTES (1u << 20) /* and one more title */
#define CHAIN_MAX \
	64 /* titles of one process, each in a segment of its own: bounds the reader's time */

static int put_string(struct bytes *out, const struct profile *p, uint32_t string)
{
	size_t len = strtab_len(p->strings, string);
	int r = bytes_put_varint(out, len);

	return r ? r : vec_append(out, (const uint8_t *)strtab_get(p->strings, string), len);
}

int titles_encode(const struct profile *p, size_t *done, struct bytes *out)
{
	int r = 0;

	for (; *done < p->titles.len && out->len < CHUNK_BYTES && !r; ++*done) {
		const struct process_title *t = &p->titles.items[*done];
		const struct process *process = &p->processes.items[t->process];

		if ((r = bytes_put_varint(out, process->pid)) < 0 ||
		    (r = bytes_put_varint(out, process->start_ns)) < 0 ||
		    (r = put_string(out, p, t->name)) < 0 ||
		    (r = put_string(out, p, t->command_line)) < 0)
			break;
		r = put_string(out, p, process->name);
	}
	return r;
}

void titles_release(struct titles *t)
{
	for (size_t i = 0; i < t->contents.len; i++)
		free(t->contents.items[i]);
	vec_release(&t->contents);
	vec_release(&t->known);
	idmap_release(&t->ids);
}

static int get_text(const uint8_t **at, const uint8_t *end, struct title_text *text)
{
	const uint8_t *p = *at;
	uint64_t len;

	if (varint_get(&p, end, &len) < 0 || len > (size_t)(end - p))
		return -EBADMSG;
	*text = (struct title_text){ (const char *)p, len };
	*at = p + len;
	return 0;
}

static int get_title(const uint8_t **at, const uint8_t *end, struct title *t)
{
	uint64_t pid = 0;
	int r = varint_get_max(at, end, UINT32_MAX, &pid);

	t->process.pid = (uint32_t)pid;
	if (r < 0 || (r = varint_get(at, end, &t->process.start_ns)) < 0 ||
	    (r = get_text(at, end, &t->process.name)) < 0 ||
	    (r = get_text(at, end, &t->process.command_line)) < 0)
		return r;
	return get_text(at, end, &t->title);
}

static uint64_t hash_of(const struct titled *p)
{
	return hash_combine(hash_combine(hash_combine(p->pid, p->start_ns), p->recording),
			    hash_bytes(p->name.bytes, p->name.len, 0));
}

static bool is_text(struct title_text a, struct title_text b)
{
	return a.len == b.len && !memcmp(a.bytes, b.bytes, a.len);
}

static bool is_process(const struct titled *a, const struct titled *b)
{
	return a->recording == b->recording && a->pid == b->pid && a->start_ns == b->start_ns &&
	       is_text(a->name, b->name) && is_text(a->command_line, b->command_line);
}

static struct title *find(const struct titles *t, const struct titled *process)
{
	uint64_t hash = hash_of(process);
	size_t at = IDMAP_START;
	uint32_t i;

	while ((i = idmap_next(&t->ids, hash, &at)) != IDMAP_NONE)
		if (is_process(&t->known.items[i].process, process))
			return &t->known.items[i];
	return NULL;
}

/* Another title of a process takes the place of the one before. */
static int add(struct titles *t, const struct title *title)
{
	struct title *before = find(t, &title->process);
	int r;

	if (before) {
		*before = *title;
		return 0;
	}
	if ((r = idmap_reserve(&t->ids)) < 0 || (r = vec_push(&t->known, *title)) < 0)
		return r;
	idmap_insert(&t->ids, hash_of(&title->process), (uint32_t)t->known.len - 1);
	return 0;
}

int titles_check(const uint8_t *content, size_t len)
{
	const uint8_t *at = content, *end = content + len;
	struct title title;
	int r = 0;

	while (at < end && !r)
		r = get_title(&at, end, &title);
	return r;
}

int titles_add(struct titles *t, uint32_t recording, const uint8_t *content, size_t len)
{
	const uint8_t *at, *end;
	uint8_t *copy;
	int r = 0;

	if (!len || t->count >= TITLES_MAX || t->bytes + len > TITLES_BYTES_MAX)
		return 0;
	if (!(copy = malloc(len + 1)))
		return -ENOMEM;
	if (vec_push(&t->contents, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, content, len);
	t->bytes += len;
	for (at = copy, end = copy + len; at < end && !r && t->count < TITLES_MAX;) {
		struct title title = { .process.recording = recording, .order = ++t->count };

		r = get_title(&at, end, &title);
		if (!r)
			r = add(t, &title);
	}
	return r;
}

/* In a later segment the row of the process has the title of then: the next title is one of that.
 */
const struct title_text *titles_find(const struct titles *t, const struct titled *process)
{
	const struct title *found = NULL, *next = find(t, process);

	for (size_t i = 0; next && (!found || next->order > found->order) && i < CHAIN_MAX; i++) {
		struct titled titled = *process;

		found = next;
		titled.name = titled.command_line = found->title;
		next = find(t, &titled);
	}
	return found ? &found->title : NULL;
}
