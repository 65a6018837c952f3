/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TARGET_VERSION_SCAN_H
#define TARGET_VERSION_SCAN_H

#include <stdint.h>
#include <sys/types.h>

#include "target/elf.h"

/*
 * Looks for the text behind Py_GetVersion() in a process. Up to 3.10 no constant holds the version;
 * this static array, an early sys.version, does from the time the interpreter starts.
 *
 * bias: of the file in the process. 0 and *version, a PY_VERSION_HEX; with a message -EAGAIN if it
 * is not there (yet), -EBADMSG for two different ones, and those of mem_read().
 */
int version_scan(pid_t pid, const struct elf *elf, uint64_t bias, uint32_t *version);

#endif
