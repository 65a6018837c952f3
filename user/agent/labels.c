/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void labels_release(struct labels *l)
{
	while (l->list.len)
		labels_remove_at(l, l->list.len - 1);
	vec_release(&l->list);
}

/* Where it is, or is to be. */
static size_t find(const struct labels *l, const char *name, bool *is_there)
{
	size_t i = 0;
	int order = 1;

	while (i < l->list.len && (order = strcmp(l->list.items[i].name, name)) < 0)
		i++;
	*is_there = i < l->list.len && !order;
	return i;
}

const char *labels_get(const struct labels *l, const char *name)
{
	bool is_there;
	size_t i = find(l, name, &is_there);

	return is_there ? l->list.items[i].value : "";
}

void labels_remove_at(struct labels *l, size_t i)
{
	free(l->list.items[i].name);
	free(l->list.items[i].value);
	memmove(&l->list.items[i], &l->list.items[i + 1],
		(--l->list.len - i) * sizeof(struct label));
}

static int insert(struct labels *l, size_t i, const char *name, const char *value)
{
	struct label new;
	int r;

	if (l->list.len == LABELS_MAX)
		return -E2BIG;
	r = vec_reserve(&l->list, 1);
	if (r < 0)
		return r;
	new = (struct label){ strdup(name), strdup(value) };
	if (!new.name || !new.value) {
		free(new.name);
		free(new.value);
		return -ENOMEM;
	}
	memmove(&l->list.items[i + 1], &l->list.items[i], (l->list.len++ - i) * sizeof(new));
	l->list.items[i] = new;
	return 0;
}

int labels_set(struct labels *l, const char *name, const char *value)
{
	bool is_there;
	size_t i = find(l, name, &is_there);
	char *copy;

	if (!is_there)
		return *value ? insert(l, i, name, value) : 0;
	if (!*value) {
		labels_remove_at(l, i);
		return 0;
	}
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(l->list.items[i].value);
	l->list.items[i].value = copy;
	return 0;
}

bool labels_equal(const struct labels *a, const struct labels *b)
{
	if (a->list.len != b->list.len)
		return false;
	for (size_t i = 0; i < a->list.len; i++)
		if (strcmp(a->list.items[i].name, b->list.items[i].name) ||
		    strcmp(a->list.items[i].value, b->list.items[i].value))
			return false;
	return true;
}

bool label_is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				      "0123456789";

	return *name && !strchr("0123456789", *name) && !name[strspn(name, allowed)];
}
