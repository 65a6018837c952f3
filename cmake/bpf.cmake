# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bpf/*.bpf.c -> one linked object -> generated/pyebpf.skel.h
find_program(CLANG_BPF NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(BPF_ARCH arm64)
else()
  set(BPF_ARCH x86)
endif()

set(generated ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
file(GLOB bpf_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bpf/*.bpf.c)
file(GLOB bpf_headers CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/bpf/*.h ${CMAKE_SOURCE_DIR}/vmlinux/*.h)

set(bpf_objects)
foreach(source ${bpf_sources})
  get_filename_component(name ${source} NAME_WE)
  set(object ${generated}/${name}.bpf.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${CLANG_BPF} -target bpf -g -O2 -std=gnu11 -Wall -Wextra -Wno-unused-parameter
      -mcpu=v3 -D__TARGET_ARCH_${BPF_ARCH}
      ${PYEBPF_PREFIX_MAP} -I${CMAKE_SOURCE_DIR}/vmlinux -I${CMAKE_SOURCE_DIR}
      -c ${source} -o ${object}
    DEPENDS ${source} ${bpf_headers} VERBATIM COMMAND_EXPAND_LISTS)
  list(APPEND bpf_objects ${object})
endforeach()

# What `dump` loads is no part of recordings.
set(own_objects ${generated}/own.bpf.o ${generated}/still.bpf.o)
list(REMOVE_ITEM bpf_objects ${own_objects})
add_custom_command(OUTPUT ${generated}/own.skel.h
  COMMAND ${BPFTOOL} gen object ${generated}/own.linked.o ${own_objects}
  COMMAND sh -c "${BPFTOOL} gen skeleton ${generated}/own.linked.o name own > ${generated}/own.skel.h"
  DEPENDS ${own_objects} VERBATIM)

add_custom_command(OUTPUT ${generated}/pyebpf.skel.h
  COMMAND ${BPFTOOL} gen object ${generated}/pyebpf.bpf.o ${bpf_objects}
  COMMAND sh -c "${BPFTOOL} gen skeleton ${generated}/pyebpf.bpf.o name pyebpf > ${generated}/pyebpf.skel.h"
  DEPENDS ${bpf_objects} VERBATIM)
add_custom_target(pyebpf_skeleton DEPENDS ${generated}/pyebpf.skel.h ${generated}/own.skel.h)
