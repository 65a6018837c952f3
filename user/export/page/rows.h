/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_ROWS_H
#define EXPORT_PAGE_ROWS_H

#include "base/cleanup.h"
#include "export/page/blob.h"
#include "export/page/page.h"

/*
 * The rows of a page in order, as the bytes of their columns (assets/README.md, "The blob").
 * opcodes: numbers of the page by string id; NULL: there is no such column. 0, -ENOMEM, -EOVERFLOW.
 */
struct page_rows;
int page_rows_new(const struct page *page, const uint32_t *opcodes, struct page_rows **out);
void page_rows_free(struct page_rows *rows);
DEFINE_CLEANUP(struct page_rows *, page_rows_free)

/* Their number, then the columns. */
void page_rows_write(struct blob *b, const struct page_rows *rows);

#endif
