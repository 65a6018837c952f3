/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two CPythons in one process, as a plugin of a program that has one brings another one.
 *
 *     two_pythons SECONDS LIBRARY HOME LIBRARY HOME
 *
 * Says READY when both run, and ends so many seconds later. Thread 1 spins in first() of the first
 * one, thread 2 in second() of the second one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int ready[2];

struct runtime {
	const char *library, *home, *code;
};

static void *run(void *arg)
{
	const struct runtime *r = arg;
	void *h = dlopen(r->library, RTLD_NOW | RTLD_LOCAL);
	void (*initialize)(int);
	void (*set_home)(const void *);
	void *(*decode)(const char *, void *);
	int (*run_string)(const char *, void *);
	char code[512];

	if (!h) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	initialize = (void (*)(int))dlsym(h, "Py_InitializeEx");
	set_home = (void (*)(const void *))dlsym(h, "Py_SetPythonHome");
	decode = (void *(*)(const char *, void *))dlsym(h, "Py_DecodeLocale");
	run_string = (int (*)(const char *, void *))dlsym(h, "PyRun_SimpleStringFlags");
	set_home(decode(r->home, NULL));
	initialize(0);
	snprintf(code, sizeof(code),
		 "import os\n"
		 "def %s():\n"
		 "    os.write(%d, b'x')\n"
		 "    while True: sum(range(2000))\n"
		 "%s()\n",
		 r->code, ready[1], r->code);
	run_string(code, NULL);
	return NULL;
}

static void start(struct runtime *r)
{
	pthread_t thread;
	char byte;

	pthread_create(&thread, NULL, run, r);
	if (read(ready[0], &byte, 1) != 1)
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 6 || pipe(ready))
		return 2;
	start(&(struct runtime){ argv[2], argv[3], "first" });
	start(&(struct runtime){ argv[4], argv[5], "second" });
	puts("READY");
	fflush(stdout);
	sleep(strtoul(argv[1], NULL, 10));
	fflush(NULL);
	_exit(0);
}
