/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/doctor_text.h"

#include <string.h>

int doctor_wrap(struct line *l, size_t column, enum style style, const char *text)
{
	size_t width = l->t->width;

	while (*text) {
		size_t len = strcspn(text, " "), columns = foreign_columns(text, len);

		if (width && l->column > column && l->column + columns > width) {
			int r = line_end(l);

			if (r < 0)
				return r;
			line_pad(l, column);
		}
		line_put_foreign(l, style, text, len);
		text += len;
		if (*text) {
			line_put(l, style, " ");
			text++;
		}
	}
	return 0;
}

int doctor_put(const struct terminal *t, const char *label, enum style style, const char *text)
{
	struct line l = LINE_INIT(t);
	int r;

	line_put(&l, STYLE_DIM, label);
	line_pad(&l, DOCTOR_LABEL_COLUMN);
	r = doctor_wrap(&l, DOCTOR_LABEL_COLUMN, style, text);
	if (r >= 0)
		r = line_end(&l);
	line_release(&l);
	return r;
}
