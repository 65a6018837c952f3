/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_PAGE_FLAMEGRAPH_H
#define EXPORT_PAGE_FLAMEGRAPH_H

#include <stdio.h>

#include "export/page/page.h"
#include "export/page/sources.h"

/*
 * Writes the page: one HTML file that needs no other. Nothing of the recording stands in it but
 * inside base64. 0 or -ENOMEM; errors of the stream end it early and are left to whoever closes it.
 */
int flamegraph_write(const struct page *page, const struct sources *sources, FILE *out);

#endif
