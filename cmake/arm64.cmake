# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Toolchain file: builds for arm64 on another machine, by Debian's cross compiler, with the headers and
# libraries of arm64_sysroot.sh. make arm64
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

set(PYEBPF_ARM64_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-arm64-sysroot CACHE PATH
  "the FOLDER that arm64_sysroot.sh filled")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PYEBPF_ARM64_SYSROOT)
get_filename_component(CMAKE_SYSROOT ${PYEBPF_ARM64_SYSROOT}/root ABSOLUTE)
if(NOT EXISTS ${CMAKE_SYSROOT}/usr/include)
  message(FATAL_ERROR "no arm64 headers in ${CMAKE_SYSROOT}: make arm64, or cmake/arm64_sysroot.sh")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
# What the build runs of its own, man pages and completions, and unit tests.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
