# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Everything within the program, the C library included: of the packages their .a with what these need
# (--static), and by static_deps.sh those that Debian has no fit .a of. Two builds of one source are the
# same bytes, wherever they are done.
execute_process(COMMAND sh ${CMAKE_SOURCE_DIR}/cmake/static_deps.sh ${CMAKE_BINARY_DIR}/deps
  OUTPUT_FILE ${CMAKE_BINARY_DIR}/deps.log ERROR_FILE ${CMAKE_BINARY_DIR}/deps.log
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "libraries were not built: see ${CMAKE_BINARY_DIR}/deps.log")
endif()
set(ENV{PKG_CONFIG_PATH} "${CMAKE_BINARY_DIR}/deps/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
set(PKG_CONFIG_ARGN --static)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(PYEBPF_PREFIX_MAP -ffile-prefix-map=${CMAKE_BINARY_DIR}=build -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
add_compile_definitions(PYEBPF_STATIC)
add_compile_options(${PYEBPF_PREFIX_MAP})
add_link_options(-static -Wl,--build-id=sha1)
