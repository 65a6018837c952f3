/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_ROWS_H
#define EXPORT_PAGE_ROWS_H

#include "export/blob.h"
#include "export/page.h"

/*
 * Writes the rows of a page: their number, and their columns (assets/README.md, "The blob").
 * opcodes: numbers of the page by string id; NULL: there is no such column. 0, -ENOMEM, -EOVERFLOW.
 */
int page_rows_write(struct blob *b, const struct page *page, const uint32_t *opcodes);

#endif
