/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef UNWIND_TAPE_H
#define UNWIND_TAPE_H

/*
 * A process's memory as the fuzzer's bytes:
 *
 *	u8   row of rows[], modulo
 *	u8   TAPE_* bits
 *	u16  low bits of _PyRuntime, u16 of pthread_self
 *	u8   count of changed offsets, then each: u8 number of the u16 in struct py_offsets, u16
 *value
 *	...  memory: u16 address, u8 length, bytes. A length of 0 makes the page present.
 *
 * Little-endian. Only 16 bits of each address count, so that every pointer leads to some page.
 */

#define TAPE_MASK 0xffffull
#define TAPE_SWAPPED 1 /* every other page is there for task work only */
#define TAPE_TRUSTED 2 /* the process is trusted */
#define TAPE_HEAD 7
#define TAPE_BYTES_MAX 65536

#endif
