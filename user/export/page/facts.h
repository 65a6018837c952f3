/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_FACTS_H
#define EXPORT_PAGE_FACTS_H

#include "base/json.h"
#include "export/page/page.h"

#define PAGE_SCHEMA "pyebpf-page/4"

/* String ids of the profile, the empty one first. */
struct page_names {
	const uint32_t *items; /* borrowed */
	size_t len;
};

/*
 * Writes what a page knows beside its columns, one object: assets/README.md, "Facts". Errors are
 * left to json_finish().
 */
void page_put_facts(struct json *j, const struct page *page, const struct page_names *opcodes);

#endif
