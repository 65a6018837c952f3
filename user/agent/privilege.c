/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

/* All 64 of them as one number. */
struct capabilities {
	uint64_t effective, permitted;
};

static uint64_t bit(unsigned int cap)
{
	return UINT64_C(1) << cap;
}

static int get(struct capabilities *out)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct words[2] = { 0 };

	if (syscall(SYS_capget, &head, words) < 0)
		return err_set(-errno, "read the own capabilities: %s", strerror(errno));
	out->effective = words[0].effective | (uint64_t)words[1].effective << 32;
	out->permitted = words[0].permitted | (uint64_t)words[1].permitted << 32;
	return 0;
}

/* None is inherited. */
static int set(const struct capabilities *c)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct words[2] = {
		{ .effective = (uint32_t)c->effective, .permitted = (uint32_t)c->permitted },
		{ .effective = (uint32_t)(c->effective >> 32),
		  .permitted = (uint32_t)(c->permitted >> 32) },
	};

	if (syscall(SYS_capset, &head, words) < 0)
		return err_set(-errno, "give up capabilities: %s", strerror(errno));
	return 0;
}

static uint64_t always(uint64_t permitted)
{
	uint64_t caps = bit(CAP_SYS_PTRACE) | bit(CAP_CHECKPOINT_RESTORE);

	caps |= bit(permitted & bit(CAP_DAC_READ_SEARCH) ? CAP_DAC_READ_SEARCH : CAP_DAC_OVERRIDE);
	return caps & permitted;
}

static uint64_t for_session(uint64_t permitted)
{
	uint64_t caps = bit(CAP_BPF) | bit(CAP_PERFMON);

	return (permitted & caps) == caps ? caps : (caps | bit(CAP_SYS_ADMIN)) & permitted;
}

static int apply(bool is_shedding, bool is_raised)
{
	struct capabilities c = { 0 };
	uint64_t kept;
	int r = get(&c);

	if (r < 0)
		return r;
	kept = always(c.permitted);
	c.effective = is_raised ? kept | for_session(c.permitted) : kept;
	if (is_shedding)
		c.permitted = kept | for_session(c.permitted);
	return set(&c);
}

int privilege_shed(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(-errno, "set no_new_privs: %s", strerror(errno));
	return apply(true, false);
}

int privilege_raise(void)
{
	return apply(false, true);
}

int privilege_lower(void)
{
	return apply(false, false);
}
