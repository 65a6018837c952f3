/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "target/elf.h"
#include "target/proc.h"

#define SCRIPTS_MAX 5        /* BINPRM_MAX_RECURSION, Linux fs/exec.c: one script runs another */
#define FIRST_LINE_BYTES 256 /* BINPRM_BUF_SIZE, linux/binfmts.h */
#define DEFAULT_PATH "/bin:/usr/bin" /* of execvp(), glibc, without a PATH */

int command_find(const char *name, char path[PATH_MAX])
{
	const char *folder = getenv("PATH");
	int r = -ENOENT;

	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		return access(path, X_OK) < 0 ? -errno : 0;
	}
	for (folder = folder ? folder : DEFAULT_PATH; r < 0 && *folder; folder += *folder == ':') {
		int len = strcspn(folder, ":");

		if (snprintf(path, PATH_MAX, "%.*s/%s", len ? len : 1, len ? folder : ".", name) <
			    PATH_MAX &&
		    access(path, X_OK) == 0)
			r = 0;
		folder += len;
	}
	return r;
}

/* The next word from p on, NUL behind it; *rest: what follows it. NULL: there is none. */
static char *next_word(char *p, char **rest)
{
	p += strspn(p, " \t");
	*rest = p + strcspn(p, " \t\n");
	if (*rest == p)
		return NULL;
	if (**rest)
		*(*rest)++ = '\0';
	return p;
}

const char *command_of_script(char *text)
{
	const char *base;
	char *rest, *word;

	if (strncmp(text, "#!", 2))
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	word = next_word(text + 2, &rest);
	base = word ? strrchr(word, '/') : NULL;
	if (base && !strcmp(base, "/env")) {
		do /* -S, NAME=value */
			word = next_word(rest, &rest);
		while (word && (*word == '-' || strchr(word, '=')));
	}
	return word;
}

/* Opens the program, no script, and says where it is. */
static int open_program(const char *name, char path[PATH_MAX])
{
	int r = command_find(name, path);

	for (int i = 0; !r && i < SCRIPTS_MAX; i++) {
		_cleanup_(closep) int fd = file_open_regular(path, NULL);
		char line[FIRST_LINE_BYTES + 1];
		ssize_t n = fd < 0 ? fd : file_pread(fd, line, sizeof(line) - 1, 0);

		if (n < 0)
			return n;
		line[n] = '\0';
		name = command_of_script(line);
		if (!name)
			return take_fd(fd);
		r = command_find(name, path);
	}
	return r < 0 ? r : -ELOOP;
}

/* Reads a library where it is. -ENOENT: it is not there, or not what is looked for. */
typedef int (*library_reader)(struct runtime_cache *cache, const char *path, void *out);

static int read_python(struct runtime_cache *cache, const char *path, void *out)
{
	return runtime_read_file(cache, path, out);
}

static int read_c_library(struct runtime_cache *cache, const char *path, void *out)
{
	const struct file_source from = { .path = path };

	return interpreter_file_c_library(cache, &from, false, out);
}

/* What a program in bin/ needs is in lib/ beside that, or where the system has its own. */
static int find_library(struct runtime_cache *cache, const char *program, const char *library,
			library_reader reader, void *out)
{
	static const char *const folders[] = { "/../lib", "/../lib64" };
	static const char *const standard[] = { "/usr/lib/x86_64-linux-gnu",
						"/usr/lib/aarch64-linux-gnu", "/usr/lib64",
						"/usr/local/lib", "/usr/lib" };
	char real[PATH_MAX], path[PATH_MAX + 256];
	int r = -ENOENT;

	if (!realpath(program, real))
		return -errno;
	*strrchr(real, '/') = '\0';
	for (size_t i = 0; r < 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s%s/%s", real, folders[i], library);
		r = reader(cache, path, out);
	}
	for (size_t i = 0; r < 0 && i < sizeof(standard) / sizeof(standard[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", standard[i], library);
		r = reader(cache, path, out);
	}
	return r;
}

/* From where the program's code begins to its pointer to what it calls to become Python. */
static int64_t find_pointer(const struct elf *elf, const Elf64_Phdr *text)
{
	static const char *const mains[] = { "Py_BytesMain", "Py_Main", "_Py_UnixMain" };
	uint64_t vaddr;

	for (size_t i = 0; i < sizeof(mains) / sizeof(mains[0]); i++)
		if (!elf_slot(elf, mains[i], &vaddr))
			return (int64_t)(vaddr - text->p_vaddr);
	return 0;
}

/* The C library that it is going to have, where it matters. -ENOENT: not found. */
static int find_c_library(struct runtime_cache *cache, const struct elf *elf, const char *program,
			  struct py_offsets *off)
{
	static const char *const names[] = { "libpthread", "libc.so", "libc.musl" };
	struct c_library found = { 0 };
	char library[128];
	int r = THREAD_POINTER_IS_SELF ? 0 : -ENOENT;

	for (size_t i = 0; r < 0 && i < sizeof(names) / sizeof(names[0]); i++)
		if (!elf_needed(elf, names[i], library, sizeof(library)))
			r = find_library(cache, program, library, read_c_library, &found);
	off->pthread_bytes = found.pthread_bytes;
	off->pthread_tid = found.tid_at;
	return r;
}

int command_find_runtime(struct runtime_cache *cache, const char *name, struct command_runtime *out)
{
	_cleanup_(elf_freep) struct elf *elf = NULL;
	char path[PATH_MAX], library[128];
	_cleanup_(closep) int fd = open_program(name, path);
	const Elf64_Phdr *text;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || elf_open(fd, &elf) < 0 ||
	    !(text = elf_first_text(elf))) {
		err_clear();
		return -ENOENT;
	}
	*out = (struct command_runtime){ .inode = st.st_ino, .dev = kernel_dev(st.st_dev) };
	r = runtime_read_file(cache, path, &out->runtime);
	if (!r) {
		out->from_start = out->runtime.text_to_runtime - (int64_t)text->p_offset;
	} else if (r != -ENOMEM && !elf_needed(elf, "libpython", library, sizeof(library))) {
		r = find_library(cache, path, library, read_python, &out->runtime);
		out->is_library = true;
		out->from_start = find_pointer(elf, text);
	}
	if (!r)
		r = find_c_library(cache, elf, path, &out->runtime.offsets);
	err_clear(); /* it will be looked at once it runs */
	return r == -ENOMEM ? r : r < 0 ? -ENOENT : 0;
}
