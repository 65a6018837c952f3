/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef COLLECT_WAIT_WORDS_H
#define COLLECT_WAIT_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/events.h"

/* What a thread waited for, in words: markers of stacks, labels, summaries. */

/* In the place of a reason: all of a class, of which nobody knows which. */
#define WAIT_OF_CLASS(class) (WAIT_COUNT_ + (class))
#define WAIT_WORDS (WAIT_COUNT_ + CLASS_COUNT_)

#define WAIT_TEXT_BYTES 48
struct wait_text {
	char s[WAIT_TEXT_BYTES];
};

/*
 * "lock", "read: socket", "other: io_uring_enter" where the system call is known. wait: a reason
 * or WAIT_OF_CLASS(), not WAIT_NONE; below WAIT_WORDS.
 */
struct wait_text wait_text(unsigned int wait, uint16_t syscall);

/* Of a class: "read". */
const char *wait_class_word(enum wait_class class);

/* Of this machine's architecture; NULL: no such number. */
const char *syscall_name(uint16_t number);

#endif
