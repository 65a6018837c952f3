/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread-local variable of OTEP 4947, in a library as tracers have one. */

#ifdef LARGE
__thread char beside[1 << 17]; /* beyond what the static block has room for */
#endif

__thread void *otel_thread_ctx_v1;

void publish(void *record);

void publish(void *record)
{
#ifdef LARGE
	beside[0] = 1;
#endif
	__asm__ volatile("" ::: "memory");
	otel_thread_ctx_v1 = record;
	__asm__ volatile("" ::: "memory");
}
