/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SYMBOLIZE_EXCEPTIONTABLE_H
#define SYMBOLIZE_EXCEPTIONTABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * The exception table of 3.11 and later (Objects/exception_handling_notes.txt), a copy of a
 * target's memory: no input reads outside it.
 *
 * Returns how many entries of the value stack are left when the instruction at a byte offset from
 * the first bytecode raises: those belong to the blocks that it is in. -ENOENT: no handler is
 * there; -EBADMSG: a malformed table.
 */
int exceptiontable_depth(const uint8_t *table, size_t len, uint32_t instr);

#endif
