# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A thin front of CMake. `make help` lists the targets.
.POSIX:
.SUFFIXES:
.PHONY: build help deps deps-all demo check test steady check-all hostile fuzz fuzz-coverage coverage-table compositions bench \
	format share install deb image manifests kernels static release wheel arm64-sysroot arm64 static-arm64 kernels-arm64 clean \
	build-tests build-asan build-clang build-tsan build-fuzz build-fuzz-coverage build-type

PREFIX = /usr/local
DESTDIR =
JOBS = $$(nproc)
FUZZ_SECONDS = 3600
HOSTILE_SECONDS = 600
COMPOSITIONS = 2000
TIMES = 20
SUITES = unit,threads,integration,alone,hostile,races,browser
PROGRAMS = all

# configure FOLDER ARGUMENT...: one that was configured keeps its generator; a new one gets Ninja where
# there is one.
CONFIGURE = configure() { \
	folder=$$1; \
	shift; \
	if [ ! -f "$$folder/CMakeCache.txt" ] && command -v ninja >/dev/null; then \
		cmake -S . -B "$$folder" -G Ninja "$$@"; \
	else \
		cmake -S . -B "$$folder" "$$@"; \
	fi; \
}; configure

# Debian 12 (bookworm) names. Node may be of another source, whose package brings npm along.
PACKAGES = $$(command -v npm >/dev/null || echo nodejs npm) \
	bpftool bpftrace btrfs-progs ca-certificates ccache chromium clang clang-format cmake \
	debootstrap dpkg-dev esbuild gcc libbpf-dev libc6-dev libcap-dev libcjson-dev libclang-rt-14-dev \
	libcmocka-dev libcurl4-openssl-dev libelf-dev libmicrohttpd-dev libncurses-dev libpcre2-dev \
	libprotobuf-c-dev libyaml-dev libzstd-dev linux-perf llvm make nettle-dev ninja-build pkg-config \
	procps protobuf-c-compiler protobuf-compiler python3 python3-pytest python3-pytest-xdist \
	python3-yaml tmux zlib1g-dev

# What `make release` needs beside them: libcurl's TLS, and the tool of .rpm.
RELEASE_PACKAGES = libssl-dev rpm xz-utils

# What only some tests need beside them: containers, shells, other kernels.
ALL_PACKAGES = catatonit fish groff lintian man-db musl-tools podman qemu-system-x86 runc skopeo zsh

# What `make arm64` needs beside PACKAGES: a compiler, an emulator of programs (man pages are what the
# program prints), and of arm64 packages headers and libraries, which are not installed (libffi is for a Python
# that tests/kernels builds).
ARM64_PACKAGES = gcc-aarch64-linux-gnu qemu-user
ARM64_LIBRARIES = libbpf-dev libc6-dev libcjson-dev libcmocka-dev libcurl4-openssl-dev libelf-dev libffi-dev \
	libmicrohttpd-dev libncurses-dev libpcre2-dev libprotobuf-c-dev libssl-dev libyaml-dev libzstd-dev \
	nettle-dev python3-dev zlib1g-dev

# What `make kernels-arm64` builds a kernel with, of pages of 64 KiB.
KERNEL_PACKAGES = bc bison dwarves flex libssl-dev

build:
	@$(CONFIGURE) build --preset release
	cmake --build build --target pyebpf -j $(JOBS)

build-tests: build
	cmake --build build --target test_programs -j $(JOBS)

build-asan:
	@$(CONFIGURE) build-asan --preset asan
	cmake --build build-asan -j $(JOBS)

build-clang:
	@$(CONFIGURE) build-clang --preset clang
	cmake --build build-clang -j $(JOBS)

build-tsan:
	@$(CONFIGURE) build-tsan --preset tsan
	cmake --build build-tsan --target $(PROGRAMS) -j $(JOBS)

build-fuzz:
	@$(CONFIGURE) build-fuzz --preset fuzz
	cmake --build build-fuzz --target fuzz_programs -j $(JOBS)

build-fuzz-coverage:
	@$(CONFIGURE) build-fuzz-coverage --preset fuzz-coverage
	cmake --build build-fuzz-coverage --target fuzz_programs -j $(JOBS)

# The program alone: make build-type COMPILER=gcc TYPE=Release
build-type:
	@$(CONFIGURE) "build-types/$(COMPILER)-$(TYPE)" -DCMAKE_C_COMPILER="$(COMPILER)" \
		-DCMAKE_BUILD_TYPE="$(TYPE)" -DPYEBPF_WERROR=ON -DPYEBPF_TESTS=OFF
	cmake --build "build-types/$(COMPILER)-$(TYPE)" -j $(JOBS)

help:
	@echo "make             build build/pyebpf"
	@echo "make deps        install the packages that are missing (Debian 12)"
	@echo "make demo        record a bundled workload twice, leave demo.html, demo-diff.html"
	@echo "make check       what a change is most likely to break: three minutes at most"
	@echo "make test        all builds, every kind of test with small counts: ten minutes; what CI runs"
	@echo "make steady      SUITES (all) TIMES (20) times beside three busy loops: which tests fail how often"
	@echo "make check-all   every interpreter, full counts, other kernels, engines, fuzzing: hours"
	@echo "make hostile     attack the recorder for HOSTILE_SECONDS (600), as root; steps the clock, stops a CPU"
	@echo "make fuzz        libFuzzer over all parsers, FUZZ_SECONDS (3600) of CPU time in all"
	@echo "make fuzz-coverage    print how much of each parser the fuzz inputs reach"
	@echo "make coverage-table   measure docs/interpreters.md: half an hour, on a quiet machine"
	@echo "make compositions    docs/compositions.md: COMPOSITIONS (2000) of them: two hours, on a quiet machine"
	@echo "make kernels     docs/kernels.md, bpf/README.md: Debian's kernels in virtual machines: half an hour"
	@echo "make bench       measure overhead and throughput"
	@echo "make format      format the C files"
	@echo "make install     into DESTDIR and PREFIX (/usr/local)"
	@echo "make deb         build/pyebpf_VERSION_ARCHITECTURE.deb"
	@echo "make image       an image of it, pyebpf:VERSION: docs/kubernetes.md"
	@echo "make static      build-static/pyebpf: one file that runs on any Linux"
	@echo "make release     dist/: for x86-64 and arm64 that file, tarball, wheel, .deb, .rpm, image, checksums"
	@echo "make wheel       the same, and the wheel installed by every Python here"
	@echo "make arm64       build-arm64/pyebpf, cross-built on Debian 12; make static-arm64: one file"
	@echo "make kernels-arm64    the arm64 rows of docs/kernels.md: an hour, half of it once"
	@echo "make manifests   deploy/kubernetes/daemonset.yaml from the Helm chart"
	@echo "make clean       remove the build folders"

deps:
	@sh cmake/deps.sh $(PACKAGES)

deps-all: deps
	@sh cmake/deps.sh $(ALL_PACKAGES)

demo: deps build
	sh tests/demo/demo.sh build/pyebpf

check: deps
	python3 -B tests/run.py --tier=check

test: deps
	python3 -B tests/run.py --tier=test

steady: deps
	python3 -B tests/tools/beside_hogs.py --times=$(TIMES) --only=$(SUITES)

check-all: deps-all
	python3 -B tests/run.py --tier=all

hostile: deps build build-asan
	python3 -B tests/hostile/hostile.py --seconds=$(HOSTILE_SECONDS)

fuzz: deps build-fuzz
	nice -n 19 python3 -B tests/fuzz/fuzz.py --total=$(FUZZ_SECONDS) build-fuzz

fuzz-coverage: deps build-fuzz-coverage
	python3 -B tests/fuzz/coverage.py --learned=build-fuzz build-fuzz-coverage

coverage-table: deps-all build
	-python3 -B tests/tools/build_freethreaded.py
	python3 -B tests/tools/coverage_table.py

compositions: deps-all build
	-PYEBPF_COMPOSITIONS=$(COMPOSITIONS) /usr/bin/python3 -B -m pytest -q -p no:cacheprovider -n $(JOBS) \
		--tier=all --junitxml=build/compositions.xml tests/integration/test_compositions.py
	python3 -B tests/tools/compositions_table.py build/compositions.xml

kernels: deps-all build
	python3 -B tests/tools/kernel_table.py
	python3 -B tests/kernels/ledger.py --write

bench: deps build
	cmake --build build --target pages -j $(JOBS)
	sh tests/bench/run.sh

format:
	python3 -B tests/lint/format.py --fix .

share: build
	cmake --build build --target pyebpf_share -j $(JOBS)

install: share
	DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

deb: deps share
	cd build && cpack -G DEB

image: deps build
	sh deploy/image/build.sh build/pyebpf pyebpf

static: deps
	@sh cmake/deps.sh $(RELEASE_PACKAGES)
	@$(CONFIGURE) build-static -DCMAKE_BUILD_TYPE=Release -DPYEBPF_STATIC=ON -DPYEBPF_TESTS=OFF
	cmake --build build-static --target pyebpf pyebpf_share -j $(JOBS)

release: static static-arm64
	sh deploy/release/release.sh dist build-static build-arm64-static

wheel: release
	/usr/bin/python3 -B -m pytest -p no:cacheprovider -q tests/integration/test_release.py --tier=all -k wheel

arm64-sysroot: deps
	@sh cmake/deps.sh $(ARM64_PACKAGES)
	sh cmake/arm64_sysroot.sh build-arm64-sysroot $(ARM64_LIBRARIES)

arm64: arm64-sysroot
	@$(CONFIGURE) build-arm64 --preset arm64
	cmake --build build-arm64 --target pyebpf pyebpf_share -j $(JOBS)

static-arm64: arm64-sysroot
	@$(CONFIGURE) build-arm64-static --preset arm64 -DCMAKE_BUILD_TYPE=Release \
		-DPYEBPF_STATIC=ON -DPYEBPF_TESTS=OFF
	cmake --build build-arm64-static --target pyebpf pyebpf_share -j $(JOBS)

kernels-arm64: deps-all static-arm64
	@sh cmake/deps.sh qemu-system-arm $(KERNEL_PACKAGES)
	PYEBPF_MACHINE=arm64 python3 -B tests/tools/kernel_table.py

manifests:
	python3 -B tests/tools/charts.py

clean:
	cmake -E rm -rf build build-asan build-clang build-tsan build-fuzz build-fuzz-coverage build-static \
		build-arm64 build-arm64-static build-arm64-sysroot build-types dist
