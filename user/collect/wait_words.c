/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/wait_words.h"

#include <stdio.h>

#include "syscall_names.h" /* made of the compiler's asm/unistd.h: cmake/syscalls.cmake */

static const char *const words[WAIT_WORDS] = {
	[WAIT_RUNNABLE] = "runnable",
	[WAIT_LOCK] = "lock",
	[WAIT_LOCK_FILE] = "lock: file",
	[WAIT_GIL] = "GIL",
	[WAIT_SLEEP] = "sleep",
	[WAIT_POLL] = "poll",
	[WAIT_READ_SOCKET] = "read: socket",
	[WAIT_READ_FILE] = "read: file",
	[WAIT_READ_PIPE] = "read: pipe",
	[WAIT_WRITE_SOCKET] = "write: socket",
	[WAIT_WRITE_FILE] = "write: file",
	[WAIT_WRITE_PIPE] = "write: pipe",
	[WAIT_PROCESS] = "wait: process",
	[WAIT_FAULT] = "page fault",
	[WAIT_DISK] = "disk",
	[WAIT_STOPPED] = "stopped",
	[WAIT_OTHER] = "other",

	[WAIT_OF_CLASS(CLASS_RUNNABLE)] = "runnable",
	[WAIT_OF_CLASS(CLASS_LOCK)] = "lock",
	[WAIT_OF_CLASS(CLASS_GIL)] = "GIL",
	[WAIT_OF_CLASS(CLASS_SLEEP)] = "sleep",
	[WAIT_OF_CLASS(CLASS_POLL)] = "poll",
	[WAIT_OF_CLASS(CLASS_READ)] = "read",
	[WAIT_OF_CLASS(CLASS_WRITE)] = "write",
	[WAIT_OF_CLASS(CLASS_PROCESS)] = "wait: process",
	[WAIT_OF_CLASS(CLASS_FAULT)] = "page fault",
	[WAIT_OF_CLASS(CLASS_DISK)] = "disk",
	[WAIT_OF_CLASS(CLASS_OTHER)] = "other",
};

struct wait_text wait_text(unsigned int wait, uint16_t syscall)
{
	const char *name = wait == WAIT_OTHER ? syscall_name(syscall) : NULL;
	struct wait_text t;

	snprintf(t.s, sizeof(t.s), "%s%s%s", words[wait], name ? ": " : "", name ? name : "");
	return t;
}

const char *wait_class_word(enum wait_class class)
{
	return words[WAIT_OF_CLASS(class)];
}

const char *syscall_name(uint16_t number)
{
	return number < sizeof(syscall_names) / sizeof(syscall_names[0]) ? syscall_names[number]
									 : NULL;
}
