/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collect/privilege.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/workers.h"

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
	uint64_t caps = bit(CAP_SYS_PTRACE) | bit(CAP_CHECKPOINT_RESTORE) | bit(CAP_SYS_NICE);

	caps |= bit(permitted & bit(CAP_DAC_READ_SEARCH) ? CAP_DAC_READ_SEARCH : CAP_DAC_OVERRIDE);
	return caps & permitted;
}

bool privilege_is_admin_wanted(void)
{
	long paranoid;

	return file_number("/proc/sys/kernel/perf_event_paranoid", &paranoid) && paranoid > 2;
}

static uint64_t for_session(uint64_t permitted)
{
	uint64_t caps = bit(CAP_BPF) | bit(CAP_PERFMON);

	if ((permitted & caps) != caps || privilege_is_admin_wanted())
		caps |= bit(CAP_SYS_ADMIN);
	return permitted & caps;
}

static int apply(bool is_shedding, bool is_raised, uint64_t more)
{
	struct capabilities c = { 0 };
	uint64_t kept;
	int r = get(&c);

	if (r < 0)
		return r;
	kept = always(c.permitted) | (more & c.permitted);
	c.effective = is_raised ? kept | for_session(c.permitted) : kept;
	if (is_shedding)
		c.permitted = kept | for_session(c.permitted);
	return set(&c);
}

/* Before Linux 5.11 BPF maps count as locked memory; to be set while CAP_SYS_RESOURCE is there. */
static void lift_locked_memory(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	(void)setrlimit(RLIMIT_MEMLOCK, &all); /* features.c tells where it is too little */
}

int privilege_shed(const struct privilege_needs *needs)
{
	uint64_t more = 0;

	lift_locked_memory();
	if (needs->for_record)
		more |= bit(CAP_DAC_OVERRIDE) | bit(CAP_CHOWN) | bit(CAP_FOWNER) | bit(CAP_KILL);
	if (needs->has_events)
		more |= bit(CAP_SYS_ADMIN);
	if (!needs->starts_programs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(-errno, "set no_new_privs: %s", strerror(errno));
	return apply(true, needs->for_record, more);
}

int privilege_raise(void)
{
	return apply(false, true, 0);
}

int privilege_lower(void)
{
	return apply(false, false, 0);
}

/* What no profiler does. */
static const uint16_t refused[] = {
#ifndef __SANITIZE_ADDRESS__ /* whose search for leaks traces its own process */
	SYS_ptrace,
#endif
	SYS_execve,         SYS_execveat,      SYS_process_vm_writev,
	SYS_init_module,    SYS_finit_module,  SYS_delete_module,
	SYS_kexec_load,     SYS_mount,         SYS_umount2,
	SYS_pivot_root,     SYS_chroot,        SYS_setns,
	SYS_unshare,        SYS_swapon,        SYS_swapoff,
	SYS_reboot,         SYS_sethostname,   SYS_setdomainname,
	SYS_acct,           SYS_settimeofday,  SYS_clock_settime,
	SYS_adjtimex,       SYS_clock_adjtime, SYS_add_key,
	SYS_request_key,    SYS_keyctl,        SYS_userfaultfd,
	SYS_quotactl,       SYS_personality,   SYS_open_by_handle_at,
	SYS_io_uring_setup,
};
#define REFUSED ((uint8_t)(sizeof(refused) / sizeof(*refused)))

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define NUMBERS_MAX 0x40000000 /* those of x32, the same calls once more, are above */
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#define NUMBERS_MAX UINT32_MAX
#endif

/* Calls of another architecture's numbers are refused altogether. */
int privilege_confine(void)
{
	struct sock_filter program[4 + REFUSED + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 0, REFUSED + 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NUMBERS_MAX, REFUSED + 1, 0),
	};
	struct sock_filter *at = program + 4;
	struct sock_fprog filter = { .filter = program };

	for (uint8_t i = 0; i < REFUSED; i++)
		*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i],
						     (uint8_t)(REFUSED - i), 0);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	filter.len = (unsigned short)(at - program);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
		return err_set(-errno, "set a seccomp filter: %s", strerror(errno));
	workers_renew(); /* the filter is that of our threads, and of what they start */
	return 0;
}
