/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/frame_texts.h"

static int make(struct frame_texts *t, const struct exporting *x, uint32_t frame,
		frame_text_writer *write)
{
	struct frame_text text = { .at = t->bytes.len };
	int r = 0;

	while (!r && t->items.len <= frame)
		r = vec_push(&t->items, (struct frame_text){ 0 });
	if (!r)
		r = write(x, frametab_get(x->p->frames, frame), &t->bytes);
	if (!r)
		r = strbuf_error(&t->bytes);
	if (r < 0)
		return r;
	text.len = t->bytes.len - text.at;
	t->items.items[frame] = text;
	return 0;
}

int frame_texts_find(struct frame_texts *t, const struct exporting *x, uint32_t frame,
		     frame_text_writer *write, const char **text, size_t *len)
{
	int r = 0;

	if (frame >= t->items.len || !t->items.items[frame].len)
		r = make(t, x, frame, write);
	if (r < 0)
		return r;
	*text = strbuf_str(&t->bytes) + t->items.items[frame].at;
	*len = t->items.items[frame].len;
	return 0;
}

void frame_texts_release(struct frame_texts *t)
{
	strbuf_release(&t->bytes);
	vec_release(&t->items);
}
