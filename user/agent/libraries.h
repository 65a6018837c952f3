/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AGENT_LIBRARIES_H
#define AGENT_LIBRARIES_H

/*
 * libcurl and libmicrohttpd, loaded by the first that needs them: with the 26 libraries that they
 * bring they took most of the CPU time in which a command starts, and only the agent uses them. In
 * the static build they are linked. A function is called as a member: libcurl.easy_init().
 */
#define CURL_DISABLE_TYPECHECK /* the macros of curl.h that check types call by the plain names */

#include <curl/curl.h>
#include <microhttpd.h>

/* clang-format off */
#define LIBCURL_FUNCTIONS(F) \
	F(easy_cleanup) F(easy_escape) F(easy_getinfo) F(easy_init) F(easy_perform) F(easy_setopt) \
	F(easy_strerror) F(free) F(multi_add_handle) F(multi_cleanup) F(multi_info_read) F(multi_init) \
	F(multi_perform) F(multi_poll) F(multi_remove_handle) F(multi_wakeup) F(slist_append) \
	F(slist_free_all)

#define MICROHTTPD_FUNCTIONS(F) \
	F(add_response_header) F(create_response_from_buffer) F(destroy_response) F(queue_response) \
	F(start_daemon) F(stop_daemon)
/* clang-format on */

#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
#define MHD_MEMBER(name) __typeof__(MHD_##name) *name;

extern struct libcurl {
	LIBCURL_FUNCTIONS(CURL_MEMBER)
} libcurl;

extern struct libmicrohttpd {
	MICROHTTPD_FUNCTIONS(MHD_MEMBER)
} libmicrohttpd;

/*
 * To be called before the functions are. Returns 0, or -ELIBACC with a message: the library is not
 * installed. By any thread.
 */
int libcurl_load(void);
int libmicrohttpd_load(void);

#endif
