/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/cleanup.h"

/*
 * A whole file mapped read-only. data stays valid until file_map_free(). Only for files of our
 * own user: whoever may truncate a mapped file can kill the reader with SIGBUS.
 */
struct file_map {
	const unsigned char *data;
	size_t size;
};

/*
 * -ENODATA for an empty file, -EINVAL for no regular file, else what open/fstat/mmap report.
 * *out is untouched on failure.
 */
int file_map_open(const char *path, struct file_map **out);
void file_map_free(struct file_map *m);
DEFINE_CLEANUP(struct file_map *, file_map_free)

/*
 * For files that others can change: opened for reading, then read with bounds. The type is checked
 * before the file is opened, so that no device or FIFO ever is. Returns the fd (close-on-exec) and
 * fills st unless it is NULL; -EINVAL for anything but a regular file. Paths are followed as open()
 * does: for a path that a target chose use target/rights.h.
 */
int file_open_regular(const char *path, struct stat *st);

/*
 * Does what fd, perhaps O_PATH, refers to lie on a file system that the kernel makes up, such as
 * procfs or sysfs? Its files are no data of anybody: the kernel decides by the reader what is in
 * them. True also where nothing is known.
 */
bool file_is_of_kernel(int fd);

/* The check alone. name is for the message. */
int file_check_regular(int fd, const char *name, struct stat *st);

/*
 * Opens for reading what an O_PATH fd refers to; whatever its name refers to by now. Negative
 * errno, without a message.
 */
int file_reopen(int place);

/*
 * Reads len bytes at offset. Returns how many were there: less than len only at the end of the
 * file. Negative errno (-EOVERFLOW for offsets beyond off_t), without a message.
 */
ssize_t file_pread(int fd, void *buf, size_t len, uint64_t offset);

/*
 * Reads a whole regular file, /proc included, into memory; *out is NUL-terminated, to be freed
 * with free(). -EFBIG if it holds more than max bytes. Outputs are untouched on failure.
 */
int file_read(const char *path, size_t max, char **out, size_t *len);

/* The same of what is known to be a file of /proc: without a look at whether it is a regular one.
 */
int file_read_proc(const char *path, size_t max, char **out, size_t *len);

/* The number that a file of /proc or /sys begins with. False: no such file, or not for us to see.
 */
bool file_number(const char *path, long *out);

/*
 * Makes a folder, and those above it that are missing, the umask applied to mode. 0 also if it is
 * there already; a negative errno with a message.
 */
int file_make_directory(const char *path, mode_t mode);

/*
 * A new file beside path, with a name that nobody can have prepared: *name, to be freed, from where
 * it is to be renamed. It belongs to the caller of sudo. Returns the descriptor, for reading and
 * writing, or a negative errno with a message that names path. Then partial_forget(), or
 * file_remove_partial().
 */
int file_open_partial(const char *path, char **name);
void file_remove_partial(const char *name);

/* Makes renames to path last through a power cut. Best effort. */
void file_sync_directory_of(const char *path);

/* The number of the descriptor of ours that a path means, "-" being `dash`. -1: it means none. */
int file_descriptor_of(const char *path, int dash);

/*
 * Where output to a path goes. 1 and *fd: to a descriptor of ours, as "-" (standard output),
 * /dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N, /dev/null and /dev/full say; the caller
 * closes it. 0: to a file that is not there yet, or a regular one of our own, or of the user who
 * called sudo, that is replaced.
 *
 * A negative errno, with a message, for all else, which somebody may have put there: -EEXIST for a
 * file of another user, a FIFO or a device; -ELOOP for a symbolic link; -EISDIR.
 */
int file_output(const char *path, int *fd);

/* The file is ours, or the user's who called sudo. */
bool file_is_own(const struct stat *st);

/*
 * 0 if the file at path, whose stat is st, is ours, or the user's who called sudo. Else -EEXIST
 * with a message. After file_output() another file may get the name: check the opened one, too.
 */
int file_check_own(const char *path, const struct stat *st);

/* The mode of new files of ours: nobody else writes to them. The umask takes more away. */
#define OUTPUT_MODE 0644

/*
 * From now on new files are readable for nobody for whom a file of this mode is not: takes rights
 * from the umask.
 */
void file_keep_private(mode_t mode);

/*
 * A file that was there already, and is written to in place, loses the rights that a new one would
 * not have. 0 or a negative errno, without a message.
 */
int file_keep_mode(int fd, const struct stat *st);

/* Whose new files are: the user who called sudo, if we are root by that, or ours. */
uid_t file_owner(void);

/*
 * A file that we have made becomes that of the user who called sudo, if we are root by that. 0 or a
 * negative errno, without a message.
 */
int file_give_to_caller(int fd);

/*
 * Writes all of it, through short writes and EINTR. Negative errno, without a message: -ETIMEDOUT
 * if whoever reads the other end of a pipe takes nothing for a second and we were told to end, by
 * file_end_soon() or by a SIGTERM, SIGINT or SIGHUP that is blocked and waits.
 */
int file_write(int fd, const void *bytes, size_t len);
void file_end_soon(void);

/*
 * An output that appears whole or not at all. What is written goes to a new file beside the
 * target (NAME.XXXXXXXX.partial, so the rename stays in one file system);
 * atomic_file_commit() syncs it and renames it over the target. Freed before that, it is removed.
 * Mode OUTPUT_MODE less the umask. What else may be at the path, and where bytes go straight out:
 * file_output().
 */
struct atomic_file;

/* *out is untouched on failure. */
int atomic_file_open(const char *path, struct atomic_file **out);

/* From now on a write beyond so many more bytes fails with -E2BIG, as other errors do. */
void atomic_file_limit(struct atomic_file *f, uint64_t bytes);

/* 0, or the errno of the first write that failed so far, negative, without a message. */
int atomic_file_error(const struct atomic_file *f);

/* Borrowed, fully buffered; never fclose() it. Write errors show in atomic_file_commit(). */
FILE *atomic_file_stream(struct atomic_file *f);

/*
 * Call once. Negative errno of the first write that failed, or of sync or rename; the target is
 * then as before. -EPIPE: whoever read our output has left, which commands take for success.
 */
int atomic_file_commit(struct atomic_file *f);
void atomic_file_free(struct atomic_file *f);
DEFINE_CLEANUP(struct atomic_file *, atomic_file_free)

/* The three in one: bytes become the file at path ("-": are written to standard output). */
int file_write_whole(const char *path, const void *bytes, size_t len);

#endif
