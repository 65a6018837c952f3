/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PROFILE_IMPORTS_H
#define PROFILE_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "profile/profile.h"

/*
 * Folds what CPython does for an import statement, five to seven frames of importlib each, into
 * the frame of what is imported:
 *
 *	<module>;_find_and_load;_find_and_load_unlocked;_load_unlocked;exec_module;
 *		_call_with_frames_removed;<module>;f
 *	<module>;import json;f
 *
 * `import NAME` stands for the module's own code, with its file and lines: NAME is that of the
 * file, of the folder where that is __init__.py, with the packages as far as the path tells them
 * (behind site-packages, lib/python3.12) or they are being imported around it. Where importlib's
 * frames lead to no module (a file is looked for, read, unmarshalled, a C extension runs) they are
 * the frame `import`, a marker: what is imported is not known. Frames below that stay. C on the way
 * there, `<native>` of record --native, is part of it.
 *
 * Samples keep their weight, their thread, their number. Starts as zeros, for one profile.
 */
struct import_fold {
	VEC(struct import_path) paths; /* by stack id of the profile */
	VEC(uint8_t) kinds;            /* by frame id: enum import_frame */
	bool has_machinery;
};

/* One stack: what it becomes, and while it ends in importlib's frames what they hang below. */
struct import_path {
	uint32_t folded;
	uint32_t below;  /* folded stack; IMPORT_OUTSIDE: it does not end in them */
	uint32_t inside; /* string id: dotted name of the module being imported; 0: none is */
};
#define IMPORT_OUTSIDE UINT32_MAX

#define IMPORT_PREFIX "import " /* of such a frame's name: no function has a space in it */

void import_fold_release(struct import_fold *fold);

/*
 * Sets the stacks of all samples that p holds now. p gets further frames and stacks. 0, -ENOMEM or
 * -EOVERFLOW. Linear in the stacks that are new since the last call.
 */
int import_fold_samples(struct import_fold *fold, struct profile *p);

#endif
