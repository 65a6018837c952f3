/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "export/functions.h"

#include <errno.h>
#include <stdlib.h>

void functions_release(struct functions *f)
{
	frametab_free(f->table);
	free(f->of_frame);
}

int functions_find(struct functions *f, const struct profile *p)
{
	uint32_t count = frametab_count(p->frames);
	int r = frametab_new(&f->table);

	f->of_frame = calloc((size_t)count + 1, sizeof(*f->of_frame));
	if (!f->of_frame)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && !r; i++) {
		const struct frame *from = frametab_get(p->frames, i);
		struct frame function = { .name = from->name,
					  .file = from->file,
					  .first_line = from->first_line,
					  .kind = from->kind };

		r = frametab_intern(f->table, &function, &f->of_frame[i]);
	}
	if (r < 0)
		return r;
	f->none = frametab_count(f->table);
	f->of_frame[count] = f->none;
	return 0;
}
