# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# user/export/*.proto -> generated/NAME.pb-c.[ch], for the libraries that write and read them. The generated code
# is not held to our warnings.
find_program(PROTOC_C NAMES protoc-c REQUIRED)

set(generated ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${generated})
file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/user/export/*.proto)
set(protobuf_sources)
foreach(proto ${protos})
  get_filename_component(name ${proto} NAME_WE)
  add_custom_command(OUTPUT ${generated}/${name}.pb-c.c ${generated}/${name}.pb-c.h
    COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/user/export --c_out=${generated} ${proto}
    DEPENDS ${proto} VERBATIM)
  list(APPEND protobuf_sources ${generated}/${name}.pb-c.c)
endforeach()

add_library(pyebpf_protobuf STATIC ${protobuf_sources})
target_link_libraries(pyebpf_protobuf PUBLIC PkgConfig::PROTOBUF_C)
foreach(library import export)
  add_dependencies(pyebpf_${library} pyebpf_protobuf)
  target_link_libraries(pyebpf_${library} PUBLIC pyebpf_protobuf)
endforeach()
