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
#else
#include <Python.h>
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

#ifdef LATE
/* Nothing in the program's own memory leads to the library. */
static int run(const char *path, long milliseconds, const char *text)
{
	volatile unsigned long work = 0;
	clock_t end = clock() + milliseconds * (CLOCKS_PER_SEC / 1000);
	int (*run_string)(const char *text, void *flags);
	void (*initialize)(void);
	void *library;

	while (clock() < end)
		work++;
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&initialize = dlsym(library, "Py_Initialize");
	*(void **)&run_string = dlsym(library, "PyRun_SimpleStringFlags");
	initialize();
	return run_string(text, NULL);
}
#endif

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
#ifdef LATE
	return run(argv[1], strtol(argv[2], NULL, 10), read_whole(argv[3]));
#else
	Py_Initialize();
	return PyRun_SimpleString(read_whole(argv[1]));
#endif
}
