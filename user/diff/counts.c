/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "diff/counts.h"

struct counts diff_counts(const struct diff *d, enum counted kind, size_t at)
{
	switch (kind) {
	case COUNTED_NODE:
		return (struct counts){ d->nodes[at].base_total, d->nodes[at].total };
	case COUNTED_NODE_SELF:
		return (struct counts){ d->nodes[at].base_self, d->nodes[at].self };
	case COUNTED_FUNCTION:
		return (struct counts){ d->functions[at].base_total, d->functions[at].total };
	case COUNTED_FUNCTION_SELF:
		break;
	}
	return (struct counts){ d->functions[at].base_self, d->functions[at].self };
}

size_t diff_count_of(const struct diff *d, enum counted kind)
{
	return kind <= COUNTED_NODE_SELF ? d->node_count : d->function_count;
}
