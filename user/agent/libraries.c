/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/libraries.h"

#ifdef PYEBPF_STATIC
#define CURL_LINKED(name) .name = curl_##name,
#define MHD_LINKED(name) .name = MHD_##name,

struct libcurl libcurl = { LIBCURL_FUNCTIONS(CURL_LINKED) };
struct libmicrohttpd libmicrohttpd = { MICROHTTPD_FUNCTIONS(MHD_LINKED) };

int libcurl_load(void)
{
	return 0;
}

int libmicrohttpd_load(void)
{
	return 0;
}
#else
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "base/err.h"

struct libcurl libcurl;
struct libmicrohttpd libmicrohttpd;

struct function {
	const char *name;
	void **pointer; /* POSIX: that of a function is as large as that of an object */
};

#define CURL_ROW(name) { "curl_" #name, (void **)&libcurl.name },
#define MHD_ROW(name) { "MHD_" #name, (void **)&libmicrohttpd.name },

static const struct function curl_rows[] = { LIBCURL_FUNCTIONS(CURL_ROW) };
static const struct function mhd_rows[] = { MICROHTTPD_FUNCTIONS(MHD_ROW) };

static int load_now(const char *soname, const char *use, const struct function *rows, size_t count)
{
	void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < count && library; i++)
		if (!(*rows[i].pointer = dlsym(library, rows[i].name)))
			library = NULL;
	return library ? 0
		       : err_set(-ELIBACC, "load what the agent needs to %s: %s", use, dlerror());
}

/* Threads wait for the one that loads: a pointer that is set may be the first of several. */
static int load(const char *soname, const char *use, const struct function *rows, size_t count)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int r;

	pthread_mutex_lock(&lock);
	r = *rows[count - 1].pointer ? 0 : load_now(soname, use, rows, count);
	pthread_mutex_unlock(&lock);
	return r;
}

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

int libcurl_load(void)
{
	return load(CURL_SONAME, "send profiles and ask for pods", curl_rows, COUNT(curl_rows));
}

int libmicrohttpd_load(void)
{
	return load(MICROHTTPD_SONAME, "serve metrics (http.port)", mhd_rows, COUNT(mhd_rows));
}
#endif
