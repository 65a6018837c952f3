/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/source.h"

const struct source sources[SOURCE_COUNT_] = {
	[SOURCE_TICKS] = { .prefix = "",
			   .events = "ticks",
			   .losses = loss_ticks,
			   .expected = session_expected_ticks },
	[SOURCE_SWITCHES] = { .prefix = "switch_", .events = "spans", .losses = loss_spans },
	[SOURCE_EVENTS] = { .prefix = "event_", .events = "events", .losses = loss_events },
};
