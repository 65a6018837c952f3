# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A thin front of CMake. `make help` lists the targets.
.POSIX:
.SUFFIXES:
.PHONY: build help deps deps-all demo test check-all coverage-table bench format share install deb \
	image manifests clean build-asan build-clang

PREFIX = /usr/local
DESTDIR =
JOBS = $$(nproc)

# A folder that was configured keeps its generator; a new one gets Ninja where there is one.
CONFIGURE = configure() { \
	if [ ! -f "$$1/CMakeCache.txt" ] && command -v ninja >/dev/null; then \
		cmake -S . --preset "$$2" -G Ninja; \
	else \
		cmake -S . --preset "$$2"; \
	fi; \
}; configure

# Debian 12 (bookworm) names. Node may be of another source, whose package brings npm along.
PACKAGES = $$(command -v npm >/dev/null || echo nodejs npm) \
	bpftool bpftrace ca-certificates chromium clang clang-format cmake debootstrap dpkg-dev \
	esbuild gcc libbpf-dev libc6-dev libcap-dev libcjson-dev libclang-rt-14-dev libcmocka-dev \
	libcurl4-openssl-dev libelf-dev libmicrohttpd-dev libpcre2-dev libprotobuf-c-dev \
	libyaml-dev libzstd-dev linux-perf llvm make ninja-build pkg-config procps \
	protobuf-c-compiler protobuf-compiler python3 python3-pytest python3-yaml zlib1g-dev

# What only some tests need beside them: containers, shells, other kernels.
ALL_PACKAGES = catatonit fish groff lintian man-db podman qemu-system-x86 runc zsh

build:
	@$(CONFIGURE) build release
	cmake --build build --target pyebpf -j $(JOBS)

build-asan:
	@$(CONFIGURE) build-asan asan
	cmake --build build-asan -j $(JOBS)

build-clang:
	@$(CONFIGURE) build-clang clang
	cmake --build build-clang -j $(JOBS)

help:
	@echo "make             build build/pyebpf"
	@echo "make deps        install the packages that are missing (Debian 12)"
	@echo "make demo        record a bundled workload twice, leave demo.html, demo-diff.html"
	@echo "make test        deps, all builds, unit and integration tests"
	@echo "make check-all   the same with every interpreter and full counts: hours"
	@echo "make coverage-table   measure docs/interpreters.md: half an hour, on a quiet machine"
	@echo "make bench       measure overhead and throughput"
	@echo "make format      format the C files"
	@echo "make install     into DESTDIR and PREFIX (/usr/local)"
	@echo "make deb         build/pyebpf_VERSION_ARCHITECTURE.deb"
	@echo "make image       an image of it, pyebpf:VERSION: docs/kubernetes.md"
	@echo "make manifests   deploy/kubernetes/daemonset.yaml from the Helm chart"
	@echo "make clean       remove the build folders"

deps:
	@sh cmake/deps.sh $(PACKAGES)

deps-all: deps
	@sh cmake/deps.sh $(ALL_PACKAGES)

demo: deps build
	sh tests/demo/demo.sh build/pyebpf

test: deps build build-asan build-clang
	python3 -B tests/run.py --tier=test

check-all: deps-all build build-asan build-clang
	python3 -B tests/run.py --tier=all

coverage-table: deps-all build
	python3 -B tests/tools/build_freethreaded.py
	python3 -B tests/tools/coverage_table.py

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

manifests:
	python3 -B tests/tools/charts.py

clean:
	cmake -E rm -rf build build-asan build-clang
