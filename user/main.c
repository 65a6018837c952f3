/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>

#include "cmd/cmd.h"

static const struct command *const commands[] = {
	/* clang-format off */ /* cmake/package.cmake reads a command a line */
	&command_record,
	&command_top,
	&command_report,
	&command_diff,
	&command_dump,
	&command_export,
	&command_import,
	&command_cat,
	&command_agent,
	&command_doctor,
	&command_guide,
	&command_completions,
	&command_man,
	NULL,
	/* clang-format on */
};

int main(int argc, char **argv)
{
	return cmd_main(commands, argc, argv);
}
