/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_FRAME_TEXTS_H
#define EXPORT_FRAME_TEXTS_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "export/export.h"

/*
 * What a format that writes each sample's stack says of a frame, made once: of the frames of deep
 * stacks most were met before. Zeroed it is empty; ends in frame_texts_release().
 */
struct frame_text {
	size_t at, len; /* in the bytes; 0: not made yet */
};

struct frame_texts {
	struct strbuf bytes;
	VEC(struct frame_text) items; /* by frame id */
};

/* Appends the text of a frame, which is not empty. 0 or a negative errno. */
typedef int frame_text_writer(const struct exporting *x, const struct frame *f, struct strbuf *out);

/* Where the text of a frame is, without NUL; valid until the next call. */
int frame_texts_find(struct frame_texts *t, const struct exporting *x, uint32_t frame,
		     frame_text_writer *write, const char **text, size_t *len);

void frame_texts_release(struct frame_texts *t);

#endif
