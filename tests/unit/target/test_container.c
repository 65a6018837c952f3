/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "target/container.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID_ "1f2e3d4c_5b6a_7988_a7b6_c5d4e3f2a1b0"
#define UID2 "aaaabbbb-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID2_ "aaaabbbb_5b6a_7988_a7b6_c5d4e3f2a1b0"
#define STATIC "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
#define NS                                                                              \
	"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice" \
	"/cri-containerd-" A ".scope"

/* As they stand on real hosts: engines, drivers and cgroup versions. */
static void test_container_of_cgroups(void **state)
{
	static const struct {
		const char *name, *root, *text, *container, *pod; /* root: of our namespace */
	} cases[] = {
		{ "v2, containerd, systemd", NULL,
		  "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/cri-containerd-" A ".scope\n",
		  A, UID },
		{ "v2, containerd, systemd, guaranteed", NULL,
		  "0::/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope\n", A,
		  UID },
		{ "v2, containerd, cgroupfs", NULL, "0::/kubepods/besteffort/pod" UID "/" A "\n", A,
		  UID },
		{ "v2, containerd's own slice", NULL,
		  "0::/system.slice/containerd.service/kubepods-besteffort-pod" UID_
		  ".slice:cri-containerd:" A "\n",
		  A, UID },
		{ "v2, CRI-O, systemd", NULL,
		  "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
		  ".slice/crio-" A ".scope/container\n",
		  A, UID },
		{ "v2, CRI-O, cgroupfs", NULL, "0::/kubepods/pod" UID "/crio-" A "\n", A, UID },
		{ "v2, CRI-O's monitor", NULL,
		  "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" A ".scope\n", "",
		  UID },
		{ "v2, kind: a node in a container", NULL,
		  "0::/docker/" B "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
		  ".slice/cri-containerd-" A ".scope\n",
		  A, UID },
		{ "v2, static pod", NULL,
		  "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC
		  ".slice/cri-containerd-" A ".scope\n",
		  A, STATIC },
		{ "v2, docker, systemd", NULL, "0::/system.slice/docker-" A ".scope\n", A, "" },
		{ "v2, docker, cgroupfs", NULL, "0::/docker/" A "\n", A, "" },
		{ "v2, podman, root", NULL, "0::/machine.slice/libpod-" A ".scope/container\n", A,
		  "" },
		{ "v2, podman, a user's", NULL,
		  "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A
		  ".scope\n",
		  A, "" },
		{ "v2, podman, a pod of its own", NULL,
		  "0::/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope\n", A, "" },
		{ "v2, nerdctl", NULL, "0::/system.slice/nerdctl-" A ".scope\n", A, "" },
		{ "v1, containerd, cgroupfs", NULL,
		  "12:cpu,cpuacct:/kubepods/burstable/pod" UID "/" A
		  "\n1:name=systemd:/kubepods/burstable/pod" UID "/" A "\n",
		  A, UID },
		{ "v1, containerd, systemd", NULL,
		  "11:pids:/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" A
		  ".scope\n1:name=systemd:/kubepods.slice/kubepods-pod" UID_
		  ".slice/cri-containerd-" A ".scope\n",
		  A, UID },
		{ "v1, CRI-O", NULL,
		  "4:memory:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
		  ".slice/crio-" A ".scope\n",
		  A, UID },
		{ "v1, docker", NULL, "4:memory:/docker/" A "\n3:cpuset:/docker/" A "\n", A, "" },
		{ "v1, podman", NULL, "4:memory:/libpod_parent/libpod-" A "\n", A, "" },
		{ "hybrid, docker", NULL,
		  "1:name=systemd:/docker/" A "\n0::/system.slice/docker.service\n", A, "" },
		{ "hybrid, containerd", NULL,
		  "9:memory:/kubepods/burstable/pod" UID "/" A
		  "\n0::/system.slice/containerd.service\n",
		  A, UID },
		{ "namespace not known", NULL, "0::/\n", "", "" },
		{ "in our own container", NS, "0::/\n", A, UID },
		{ "beside us in the pod", NS, "0::/../cri-containerd-" B ".scope\n", B, UID },
		{ "another pod of our class", NS,
		  "0::/../../kubepods-burstable-pod" UID2_ ".slice/crio-" B ".scope\n", B, UID2 },
		{ "the host's", NS, "0::/../../../../system.slice/cron.service\n", "", "" },
		{ "namespace of version 2 only", NS,
		  "9:name=systemd:/\n0::/../cri-containerd-" B ".scope\n", B, UID },
		{ "not known, but another pod", NULL,
		  "0::/../../kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope\n", A, UID },
		{ "a container in a container", NULL, "0::/docker/" A "/docker/" B "\n", B, "" },
		{ "none", NULL, "0::/system.slice/cron.service\n", "", "" },
		{ "pod UID too short", NULL, "0::/pod1234\n", "", "" },
		{ "pod UID without its dashes' places", NULL,
		  "0::/pod1f2e3d4c5-b6a-7988-a7b6-c5d4e3f2a1b0\n", "", "" },
		{ "a word that ends in pod", NULL, "0::/tripod" UID "\n", "", "" },
		{ "no newline", NULL, "0::/docker/" A, A, "" },
		{ "no path", NULL, "0::\n0:\n\n:", "", "" },
		{ "nothing", NULL, "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cgroup_root root = { (char *)"", (char *)cases[i].root, NULL };
		struct cgroup_namespace ours = { &root, root.path != NULL, 0 };
		struct container got = { 0 };

		container_of_cgroups(cases[i].text, strlen(cases[i].text), &ours, &got);
		if (strcmp(got.id, cases[i].container) || strcmp(got.pod.uid, cases[i].pod))
			fail_msg("%s: '%s' '%s'", cases[i].name, got.id, got.pod.uid);
	}
}

static void test_container_of_mounts(void **state)
{
	static const struct {
		const char *name, *text, *container, *pod;
	} cases[] = {
		{ "docker",
		  "641 620 254:1 /var/lib/docker/containers/" A "/resolv.conf /etc/resolv.conf rw\n"
		  "642 620 254:1 /var/lib/docker/containers/" A
		  "/hostname /etc/hostname rw - ext4\n",
		  A, "" },
		{ "podman",
		  "301 280 0:24 /containers/storage/overlay-containers/" A
		  "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n",
		  A, "" },
		{ "kubelet and containerd",
		  "900 880 8:1 /var/lib/kubelet/pods/" UID "/etc-hosts /etc/hosts rw - ext4\n"
		  "901 880 8:1 /var/lib/kubelet/pods/" UID
		  "/containers/app/1a2b3c4d /dev/termination-log rw - ext4\n"
		  "902 880 8:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" B
		  "/hostname /etc/hostname rw - ext4\n",
		  "", UID },
		{ "kubelet and CRI-O: the sandbox is not the container",
		  "902 880 0:24 /containers/storage/overlay-containers/" B
		  "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n"
		  "900 880 8:1 /var/lib/kubelet/pods/" UID "/etc-hosts /etc/hosts rw - ext4\n",
		  "", UID },
		{ "a host's own mounts for its pods",
		  "77 30 8:1 /var/lib/kubelet/pods/" UID "/volumes/a /var/lib/kubelet/pods/" UID
		  "/volume-subpaths/a rw - ext4\n",
		  "", "" },
		{ "a host", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:5 / /proc rw - proc\n",
		  "", "" },
		{ "cut", "900 880 8:1 /var/lib/kubelet/pods/" UID "/etc-hosts", "", "" },
		{ "nothing", "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct container got = { 0 };

		container_of_mounts(cases[i].text, strlen(cases[i].text), &got);
		if (strcmp(got.id, cases[i].container) || strcmp(got.pod.uid, cases[i].pod))
			fail_msg("%s: '%s' '%s'", cases[i].name, got.id, got.pod.uid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_container_of_cgroups),
		cmocka_unit_test(test_container_of_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
