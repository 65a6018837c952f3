/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>

#include "cmd/cmd.h"
#include "guide.h"

static int run(struct call *call)
{
	const struct opt opts[] = { OPT_END };
	int status;

	if (!cmd_options(call, opts, &status))
		return status;
	if (call->operands.len)
		return cmd_usage(call, "unexpected operand %s", call->operands.items[0]);
	fputs(guide_text, stdout);
	return EXIT_OK;
}

const struct command command_guide = {
	.name = "guide",
	.summary = "print one page about pyebpf for scripts and language models",
	.usage = "",
	.about = "Prints one page of Markdown that teaches a script or a language model this "
		 "program: what to run for which question, how to select a part, what the JSON "
		 "has, what exit codes mean. Each of its examples is run by a test.",
	.operands = "",
	.run = run,
};
