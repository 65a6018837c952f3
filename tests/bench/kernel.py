# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel tells of a profiler from outside: its BPF programs, its events, its memory."""
import contextlib
import ctypes
import fcntl
import os
import platform
import resource
import struct
import time

SYS_BPF = {"x86_64": 321, "aarch64": 280}
SYS_PIDFD_GETFD = 438  # the same on every machine
BPF_PROG_LOAD, BPF_RAW_TRACEPOINT_OPEN, BPF_ENABLE_STATS = 5, 17, 32
BPF_PROG_TYPE_RAW_TRACEPOINT = 17
BPF_PROG_TYPE_PERF_EVENT = 7
PERF_EVENT_IOC_ENABLE = 0x2400
PERF_EVENT_IOC_DISABLE = 0x2401

libc = ctypes.CDLL(None, use_errno=True)


def syscall(what, number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "%s: %s" % (what, os.strerror(ctypes.get_errno())))
    return result


@contextlib.contextmanager
def bpf_stats():
    """Run times of BPF programs are counted meanwhile, whatever kernel.bpf_stats_enabled says."""
    kind = (ctypes.c_uint32 * 1)(0)  # BPF_STATS_RUN_TIME
    fd = syscall("BPF_ENABLE_STATS", SYS_BPF[platform.machine()], BPF_ENABLE_STATS,
                 ctypes.byref(kind), ctypes.sizeof(kind))
    try:
        yield
    finally:
        os.close(fd)


PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_PRLIMIT64 = {"x86_64": 302, "aarch64": 261}
BPF_LD_W_ABS, BPF_JEQ_K, BPF_RET_K = 0x20, 0x15, 0x06  # linux/bpf_common.h
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7fff0000, 0x00050000
NR_AT, RESOURCE_AT = 0, 24  # in struct seccomp_data; the second argument's lower half


def allow_locked_memory():
    """In the child: as much as it likes. Where that is not ours to give (no CAP_SYS_RESOURCE) the call that
    asks for it succeeds and does nothing: since Linux 5.11 BPF maps do not count as locked."""
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY,) * 2)
        return
    except (OSError, ValueError):
        pass
    code = b"".join(struct.pack("<HBBI", *row) for row in (
        (BPF_LD_W_ABS, 0, 0, NR_AT), (BPF_JEQ_K, 0, 3, SYS_PRLIMIT64[platform.machine()]),
        (BPF_LD_W_ABS, 0, 0, RESOURCE_AT), (BPF_JEQ_K, 0, 1, resource.RLIMIT_MEMLOCK),
        (BPF_RET_K, 0, 0, SECCOMP_RET_ERRNO), (BPF_RET_K, 0, 0, SECCOMP_RET_ALLOW)))
    room = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(room)))
    for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)):
        if libc.prctl(*arguments, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")


class EmptyPrograms:
    """BPF programs that do nothing, on these tracepoints, as long as the `with` lasts."""

    def __init__(self, tracepoints):
        self.tracepoints = tracepoints
        self.fds = []

    @staticmethod
    def bpf(what, command, attributes):
        room = ctypes.create_string_buffer(attributes, 128)
        return syscall(what, SYS_BPF[platform.machine()], command, room, len(room))

    def attach(self, tracepoint):
        code = ctypes.create_string_buffer(struct.pack("<QQ", 0xb7, 0x95))  # r0 = 0; exit
        licence = ctypes.create_string_buffer(b"GPL")
        name = ctypes.create_string_buffer(tracepoint.encode())
        self.fds.append(self.bpf("BPF_PROG_LOAD", BPF_PROG_LOAD, struct.pack(
            "<IIQQ", BPF_PROG_TYPE_RAW_TRACEPOINT, 2, ctypes.addressof(code), ctypes.addressof(licence))))
        self.fds.append(self.bpf(tracepoint, BPF_RAW_TRACEPOINT_OPEN, struct.pack(
            "<QI", ctypes.addressof(name), self.fds[-1])))

    def __enter__(self):
        for tracepoint in self.tracepoints:
            self.attach(tracepoint)
        return self

    def __exit__(self, *_):
        for fd in reversed(self.fds):
            os.close(fd)


def descriptors(pid, kind):
    """[(number, {key: value} of fdinfo)] of the anonymous inodes of that kind."""
    found = []
    folder = "/proc/%d/fd" % pid
    for fd in os.listdir(folder):
        with contextlib.suppress(OSError):
            if os.readlink(os.path.join(folder, fd)).startswith("anon_inode:" + kind):
                with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
                    rows = [line.split(":", 1) for line in f if ":" in line]
                found.append((int(fd), {key: value.strip() for key, value in rows}))
    return found


def sampler_runs(pid):
    """(run_cnt, run_time_ns) of the perf_event programs that a process holds."""
    count = time_ns = 0
    for _, row in descriptors(pid, "bpf-prog"):
        if int(row["prog_type"]) == BPF_PROG_TYPE_PERF_EVENT:
            count += int(row["run_cnt"])
            time_ns += int(row["run_time_ns"])
    return count, time_ns


def bpf_bytes(pid):
    """Kernel memory of the BPF programs and maps that a process holds."""
    return sum(int(row["memlock"]) for kind in ("bpf-map", "bpf-prog")
               for _, row in descriptors(pid, kind))


class Events:
    """The perf events of another process: its samples can be switched off and on without it."""

    def __init__(self, pid):
        pidfd = os.pidfd_open(pid)
        self.fds = []
        try:
            for fd, _ in descriptors(pid, "[perf_event]"):
                self.fds.append(syscall("pidfd_getfd", SYS_PIDFD_GETFD, pidfd, fd, 0))
        finally:
            os.close(pidfd)

    def switch(self, on):
        for fd in self.fds:
            fcntl.ioctl(fd, PERF_EVENT_IOC_ENABLE if on else PERF_EVENT_IOC_DISABLE, 0)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []


def cpu_seconds(pid):
    """User and system time of a process with all its threads, exactly."""
    return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED, include/linux/posix-timers.h


def family_cpu_seconds(pid):
    """The same with its children, those that have ended to 10 ms: pyebpf has them look at others."""
    with open("/proc/%d/stat" % pid) as f:
        ended = f.read().rpartition(")")[2].split()[13:15]
    seconds = cpu_seconds(pid) + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/children" % (pid, tid)) as f:
            seconds += sum(map(cpu_seconds, map(int, f.read().split())))
    return seconds


def peak_bytes(pid):
    """The most memory that was resident; 0 once it has ended."""
    with contextlib.suppress(OSError), open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def thread_facts(pid, key):
    """The first word of that line of status, of every thread of a process."""
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/status" % (pid, tid)) as f:
            yield next(line.split()[1] for line in f if line.startswith(key + ":"))


def is_stopped(pid):
    """Whether no thread of it runs any more, nor will."""
    return all(state in "TtZX" for state in thread_facts(pid, "State"))


def is_traced(pid):
    return any(tracer != "0" for tracer in thread_facts(pid, "TracerPid"))


def machine():
    """One line: what was measured on."""
    model = ""
    virtual = "on hardware"
    with open("/proc/cpuinfo") as f:
        for line in f:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags" and " hypervisor" in value:
                virtual = "virtual machine"
    with contextlib.suppress(OSError), open("/sys/class/dmi/id/sys_vendor") as f:
        virtual += " (%s)" % f.read().strip()
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) >> 20
    return "%s, %d cores, %d GiB, Linux %s, %s" % (
        model or platform.machine(), os.cpu_count(), memory + 1, platform.release(), virtual)


class Neighbours:
    """How much of the machine others took since it was made: a bench wants none."""

    def __init__(self):
        self.start = self.read()

    @staticmethod
    def read():
        """(all time, time not idle, stolen by the host, our own), seconds."""
        with open("/proc/stat") as f:
            ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in f.readline().split()[1:9]]
        user, nice, system, idle, iowait, irq, softirq, steal = ticks
        own = sum(sum(resource.getrusage(who)[:2])
                  for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(ticks), user + nice + system + irq + softirq, steal, own

    def text(self):
        whole, busy, steal, own = (b - a for a, b in zip(self.start, self.read()))
        return "%.0f %% of the CPUs went to programs outside the bench, %.1f %% to other " \
            "machines of the host" % (100 * max(0, busy - own) / whole, 100 * steal / whole)
