/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IMPORT_PY_SPY_H
#define IMPORT_PY_SPY_H

#include <stdbool.h>
#include <stdint.h>

#include "import/span.h"

/* py-spy tells processes and threads by outermost frames (src/main.rs, 0.4). */

/* `process PID:"COMMAND"` */
bool py_spy_process(struct span text, struct span *name, uint32_t *pid);

/* `thread (ID): NAME`. An ID in hex is none of the kernel's: it stays in the name. */
bool py_spy_thread(struct span text, struct span *name, uint32_t *tid);

#endif
