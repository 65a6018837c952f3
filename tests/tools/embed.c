/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A program that is not Python and has one inside.
 *
 *	embed SCRIPT                            linked with libpython, either kind
 *	late LIBPYTHON MILLISECONDS SCRIPT      (-DLATE) loads it after it has done something else
 *
 * PYTHONHOME is where the standard library is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef LATE
#include <dlfcn.h>

static void (*Py_Initialize)(void);
static int (*PyRun_SimpleString)(const char *text);

static void load(const char *path, long milliseconds)
{
	volatile unsigned long work = 0;
	clock_t end = clock() + milliseconds * (CLOCKS_PER_SEC / 1000);
	void *library;

	while (clock() < end)
		work++;
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&Py_Initialize = dlsym(library, "Py_Initialize");
	*(void **)&PyRun_SimpleString = dlsym(library, "PyRun_SimpleStringFlags");
}
#define RUN(text) ((int (*)(const char *, void *))PyRun_SimpleString)(text, NULL)
#else
#include <Python.h>
#define RUN(text) PyRun_SimpleString(text)
#endif

static char *read_whole(const char *path)
{
	char *text = calloc(1, 65536);
	FILE *f = fopen(path, "r");

	if (!f || !text || !fread(text, 1, 65535, f)) {
		fprintf(stderr, "%s: cannot read it\n", path);
		exit(1);
	}
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
#ifdef LATE
	load(argv[1], strtol(argv[2], NULL, 10));
#endif
	Py_Initialize();
	return RUN(read_whole(argv[argc - 1]));
}
