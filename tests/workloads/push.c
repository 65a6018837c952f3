/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls a function below a frame that no interpreter runs, as functions that Nuitka has compiled
 * do.
 *
 * current   where the thread state has its innermost frame
 * previous  offset of the link in frame, -1: it is linked
 */
void *call_below(void **current, char *frame, long previous, void *(*call)(void *, void *),
		 void *callable)
{
	void *caller = *current, *result;

	if (previous >= 0)
		*(void **)(frame + previous) = caller;
	*current = frame;
	result = call(callable, 0);
	*current = caller;
	if (previous >= 0)
		*(void **)(frame + previous) = 0;
	return result;
}
