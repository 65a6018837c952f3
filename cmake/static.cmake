# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Everything within the program, the C library included: of the packages their .a with what these need
# (--static), and by static_deps.sh those that Debian has no fit .a of. Two builds of one source are the
# same bytes, wherever they are done.
set(static_deps ${CMAKE_BINARY_DIR}/deps)
if(CMAKE_CROSSCOMPILING) # within the root that pkg-config takes all paths to be in
  set(static_deps ${CMAKE_SYSROOT}/deps)
  set(static_env HOST=${CMAKE_LIBRARY_ARCHITECTURE} "CC=${CMAKE_C_COMPILER} --sysroot=${CMAKE_SYSROOT}"
    AR=${CMAKE_AR} RANLIB=${CMAKE_RANLIB})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env ${static_env}
    sh ${CMAKE_SOURCE_DIR}/cmake/static_deps.sh ${static_deps}
  OUTPUT_FILE ${CMAKE_BINARY_DIR}/deps.log ERROR_FILE ${CMAKE_BINARY_DIR}/deps.log
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "libraries were not built: see ${CMAKE_BINARY_DIR}/deps.log")
endif()
set(ENV{PKG_CONFIG_PATH} "${static_deps}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
set(PKG_CONFIG_ARGN --static)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(PYEBPF_PREFIX_MAP -ffile-prefix-map=${CMAKE_BINARY_DIR}=build -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
add_compile_definitions(PYEBPF_STATIC)
add_compile_options(${PYEBPF_PREFIX_MAP})
string(JOIN " " static_run ${CMAKE_CROSSCOMPILING_EMULATOR})
file(WRITE ${CMAKE_BINARY_DIR}/release.env # deploy/release/release.sh
  "architecture=${CMAKE_SYSTEM_PROCESSOR}\nrun='${static_run}'\nstrip='${CMAKE_STRIP}'\n"
  "deps='${static_deps}'\nsysroot='${CMAKE_SYSROOT}'\n")
add_link_options(-static -Wl,--build-id=sha1)
