/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_OPCODES_H
#define PROFILE_OPCODES_H

#include <stdbool.h>

/*
 * Name of a bytecode instruction of CPython 3.minor, as its own dis module has it, specialised and
 * instrumented ones included: "BINARY_OP_ADD_INT". NULL where that version has none of that number,
 * or the version is not known.
 */
const char *opcode_name(unsigned int minor, unsigned int opcode);

/*
 * Is it an instruction that calls something other than a Python function? A thread whose leaf frame
 * is at one runs C. Calls of Python functions are specialised and have other names, but for the
 * first few and those of too many different functions. False where nothing is specialised so: up to
 * 3.10, where a call is half the interpreter's own making of a frame, and in free-threaded 3.13.
 */
bool opcode_calls_c(unsigned int minor, bool is_free_threaded, unsigned int opcode);

#endif
