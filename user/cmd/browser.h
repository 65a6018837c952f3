/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CMD_BROWSER_H
#define CMD_BROWSER_H

/* For option tables: what --open does. */
#define BROWSER_OPEN_HELP "open the HTML report in a browser"

/*
 * Shows the file at path in the desktop's browser, as the user who called sudo where that is so.
 * Returns at once. What fails is said in a warning with the address to open by hand: the page has
 * been written.
 */
void browser_open(const char *path);

/*
 * Says how to look at what was written, in one line, where that helps: who reads our messages does
 * so on a terminal, through ssh, and this machine shows no windows. path: a recording, or a file
 * that a browser opens; of others, and of "-", nothing is said.
 */
void browser_tell_how(const char *path);

#endif
