/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/breakdown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cmd/account.h"

uint64_t breakdown_wall_ns(const struct load *loaded)
{
	return waits_ns(&loaded->waits, WAITS_CPU) + waits_waited_ns(&loaded->waits);
}

/* Without its brackets. */
static void put_name(struct line *l, const struct load *loaded, size_t row)
{
	const struct waits_row *of = &loaded->waits.rows.items[row];
	const char *name = strtab_get(loaded->profile->strings, of->marker);
	size_t len = strlen(name);

	if (row == WAITS_CPU)
		line_put(l, STYLE_PLAIN, "CPU");
	else if (len < 2)
		line_put(l, STYLE_PLAIN, "waiting");
	else
		line_put_foreign(l, of->ns ? STYLE_COOL : STYLE_PLAIN, name + 1, len - 2);
}

static size_t longest(const uint64_t *ns, size_t rows, const bool *is_put)
{
	size_t best = rows;

	for (size_t i = WAITS_UNKNOWN; i < rows; i++)
		if (ns[i] && !is_put[i] && (best == rows || ns[i] > ns[best]))
			best = i;
	return best;
}

static void put_part(struct line *l, const struct load *loaded, size_t row, uint64_t ns,
		     uint64_t whole_ns)
{
	put_name(l, loaded, row);
	line_putf(l, STYLE_PLAIN, " %s (%s)", units_ns(ns).s, share_text(ns, whole_ns).s);
}

void breakdown_put(struct line *l, const struct load *loaded, const uint64_t *ns, uint64_t whole_ns)
{
	bool is_put[WAITS_MAX + 1] = { false };
	size_t rows = loaded->waits.rows.len, row;
	const char *comma = "";

	if (rows && ns[WAITS_CPU]) {
		put_part(l, loaded, WAITS_CPU, ns[WAITS_CPU], whole_ns);
		comma = ", ";
	}
	while ((row = longest(ns, rows, is_put)) < rows) {
		line_put(l, STYLE_PLAIN, comma);
		put_part(l, loaded, row, ns[row], whole_ns);
		is_put[row] = true;
		comma = ", ";
	}
}

void breakdown_put_all(struct line *l, const struct load *loaded)
{
	uint64_t ns[WAITS_MAX + 1] = { 0 };

	for (size_t i = 0; i < loaded->waits.rows.len; i++)
		ns[i] = waits_ns(&loaded->waits, i);
	breakdown_put(l, loaded, ns, breakdown_wall_ns(loaded));
}

int breakdown_of_threads(const struct load *loaded, uint64_t **ns)
{
	size_t rows = loaded->waits.rows.len, threads = loaded->profile->threads.len;
	_cleanup_(freep) uint64_t *of_row = calloc(threads + 1, sizeof(*of_row));
	uint64_t *all = calloc(rows * threads + 1, sizeof(*all));

	if (!all || !of_row) {
		free(all);
		return -ENOMEM;
	}
	for (size_t row = 0; row < rows; row++) {
		memset(of_row, 0, threads * sizeof(*of_row));
		waits_sum_threads(&loaded->waits, loaded->profile, row, of_row);
		for (size_t t = 0; t < threads; t++)
			all[t * rows + row] = of_row[t];
	}
	*ns = all;
	return 0;
}
