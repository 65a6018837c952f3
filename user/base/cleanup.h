/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Runs fn(&var) when var leaves scope. Every destructor takes NULL and sets no error text;
 * every fd starts at -1.
 */
#define _cleanup_(fn) __attribute__((cleanup(fn)))

#define DEFINE_CLEANUP(type, fn)          \
	static inline void fn##p(type *p) \
	{                                 \
		if (*p)                   \
			fn(*p);           \
	}

/* Gives the pointer away: the cleanup of p becomes a no-op. */
#define take_ptr(p)                       \
	({                                \
		__auto_type _taken = (p); \
		(p) = NULL;               \
		_taken;                   \
	})

/* The same for a file descriptor. */
#define take_fd(fd)                   \
	({                            \
		int _taken_fd = (fd); \
		(fd) = -1;            \
		_taken_fd;            \
	})

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* For FILEs that are only read. A writer closes by hand: fclose() is where ENOSPC shows. */
DEFINE_CLEANUP(FILE *, fclose)

#endif
