/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef INSPECT_SECRET_H
#define INSPECT_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Does a variable, attribute or key of this name probably hold a secret: "password",
 * "X-Api-Key", "accessToken"? By the name alone; upper and lower case are one, and separators do
 * not count. name: any bytes.
 */
bool secret_is_name(const char *name, size_t len);

#endif
