/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_OPCODES_H
#define PROFILE_OPCODES_H

/*
 * Name of a bytecode instruction of CPython 3.minor, as its own dis module has it, specialised and
 * instrumented ones included: "BINARY_OP_ADD_INT". NULL where that version has none of that number,
 * or the version is not known.
 */
const char *opcode_name(unsigned int minor, unsigned int opcode);

#endif
