/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/top_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

#define SPACES " \t"

/*
 * A word as a shell reads it, from *at on, where what follows it begins then. 0, or -EINVAL with a
 * message.
 */
static int read_word(const char **at, struct strbuf *word)
{
	char quote = 0;

	for (; **at && (quote || !strchr(SPACES, **at)); ++*at) {
		if (quote ? **at == quote : **at == '\'' || **at == '"')
			quote = quote ? 0 : **at;
		else if (**at == '\\' && quote != '\'' && (*at)[1])
			strbuf_putc(word, *++*at);
		else
			strbuf_putc(word, **at);
	}
	return quote ? err_set(-EINVAL, "%c is not closed", quote) : strbuf_error(word);
}

static int split(struct top_filter *f, const char *text)
{
	int r = texts_addf(&f->words, "filter"); /* argv[0] */

	for (text += strspn(text, SPACES); *text && r >= 0; text += strspn(text, SPACES)) {
		_cleanup_(strbuf_releasep) struct strbuf word = STRBUF_INIT;

		r = read_word(&text, &word);
		if (r >= 0)
			r = texts_addf(&f->words, "%s", strbuf_str(&word));
	}
	return r;
}

/* A word alone is part of a function's name. */
static int add_focus(struct top_filter *f, const char *word)
{
	int r = texts_addf(&f->words, "*%s*", word);

	if (r < 0)
		return r;
	return vec_push(&f->opts.patterns[SELECT_FOCUS],
			(const char *)f->words.items[f->words.len - 1]);
}

int top_filter_read(struct top_filter *f, const char *text)
{
	const struct opt opts[] = {
		SELECT_PATTERNS(&f->opts),
		SELECT_CONTAINERS(&f->opts),
		SELECT_LABELS(&f->opts),
		OPT_END,
	};
	_cleanup_(freep) char **argv = NULL;
	struct operands operands = { 0 };
	int r = split(f, text);

	if (r < 0)
		return r;
	argv = calloc(f->words.len + 1, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	memcpy(argv, f->words.items, f->words.len * sizeof(*argv));
	r = opt_parse(opts, (int)f->words.len, argv, &operands);
	for (int i = 0; i < operands.len && r >= 0; i++)
		r = add_focus(f, operands.items[i]);
	f->query = select_opts_query(&f->opts);
	return r < 0 ? r : 0;
}

void top_filter_release(struct top_filter *f)
{
	select_opts_release(&f->opts);
	texts_release(&f->words);
	*f = (struct top_filter){ 0 };
}
