/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef EXPORT_OTLP_H
#define EXPORT_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Does the answer to an export request say that some of it was not taken? bytes may be anything;
 * what is no such answer says nothing.
 */
bool otlp_answer_rejects(const uint8_t *bytes, size_t len);

#endif
