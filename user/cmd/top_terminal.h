/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_TOP_TERMINAL_H
#define CMD_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "cmd/top_screen.h"

/*
 * The terminal that `top` draws on, by ncurses. It is as it was when top_terminal_close() has come
 * back, when we are stopped (^Z), and also after a crash. What is written to stderr meanwhile,
 * where that is the terminal, too, is kept and comes out then.
 *
 * Signals come by top_terminal_event(): before there are other threads, which inherit that.
 */
struct top_terminal;

/* Are stdin and stdout one that can be drawn on? 0; -ENOTTY, -ENOTSUP with a message. */
int top_terminal_check(void);

/* Signals are held back from now on. A negative errno with a message. */
int top_terminal_new(struct top_terminal **out);

/* The screen is ours. 0, or -ENOTSUP with a message. */
int top_terminal_open(struct top_terminal *t);
void top_terminal_close(struct top_terminal *t);
void top_terminal_free(struct top_terminal *t); /* closes it, too */
DEFINE_CLEANUP(struct top_terminal *, top_terminal_free)

/* Becomes readable with each event. */
int top_terminal_fd(const struct top_terminal *t);

enum top_event {
	TOP_EVENT_NONE,
	TOP_EVENT_KEY,
	TOP_EVENT_RESIZE, /* or it is to be drawn anew: we were stopped */
	TOP_EVENT_CHILD,  /* one has ended */
	TOP_EVENT_QUIT,
};

/* The next one, if there is one. *key: as of enum top_key. */
enum top_event top_terminal_event(struct top_terminal *t, int *key);

void top_terminal_size(const struct top_terminal *t, size_t *width, size_t *height);
void top_terminal_draw(struct top_terminal *t, const struct top_screen *s);

/* The next drawing does not trust what is there. */
void top_terminal_forget(struct top_terminal *t);

/* The last line that went to stderr meanwhile and has not been told; NULL. Borrowed. */
const char *top_terminal_warning(struct top_terminal *t);

#endif
