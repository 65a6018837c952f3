/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/texts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"

void texts_release(struct texts *t)
{
	for (size_t i = 0; i < t->len; i++)
		free(t->items[i]);
	vec_release(t);
}

int texts_addf(struct texts *t, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	if (vec_reserve(t, 1) < 0)
		return -ENOMEM;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	t->items[t->len++] = text;
	return 0;
}
