# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unwinder of bpf/ on the host, over memory that tests make or take from live interpreters. Always under
# ASan and UBSan, whatever the preset: these are small programs of their own, which link no library
# of user/ but compile what they need of it. alignment: the sampler reads fields where they lie.
add_library(unwind_flags INTERFACE)
target_compile_options(unwind_flags INTERFACE
  -O1 -g -fno-omit-frame-pointer
  -fsanitize=address,undefined -fno-sanitize=alignment -fno-sanitize-recover=all
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
  -Wpointer-arith -Wwrite-strings -Wundef -fno-common -Wno-unused-parameter)
if(PYEBPF_WERROR)
  target_compile_options(unwind_flags INTERFACE -Werror)
endif()
target_link_options(unwind_flags INTERFACE -fsanitize=address,undefined)
if(PYEBPF_FUZZ)
  target_compile_options(unwind_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_compile_definitions(unwind_flags INTERFACE _GNU_SOURCE)
target_include_directories(unwind_flags INTERFACE
  ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/user ${CMAKE_CURRENT_LIST_DIR})

add_library(unwind_host STATIC
  ${CMAKE_CURRENT_LIST_DIR}/hamt.c
  ${CMAKE_CURRENT_LIST_DIR}/memory.c
  ${CMAKE_CURRENT_LIST_DIR}/rows.c
  ${CMAKE_CURRENT_LIST_DIR}/unwinder.c
  ${CMAKE_CURRENT_LIST_DIR}/world.c)
target_link_libraries(unwind_host PUBLIC unwind_flags PkgConfig::CMOCKA)

foreach(subject frames threads state codes describe opcodes context tasks trace)
  add_executable(unwind_${subject} ${CMAKE_CURRENT_LIST_DIR}/test_${subject}.c)
  target_link_libraries(unwind_${subject} PRIVATE unwind_host)
  add_test(NAME unwind/${subject} COMMAND unwind_${subject})
  # A failed assertion leaves its world behind: only the assertion is of interest then.
  set_tests_properties(unwind/${subject} PROPERTIES
    LABELS unit TIMEOUT 120 ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
endforeach()

# What the replay needs of user/, under the same sanitizers.
add_executable(unwind_replay
  ${CMAKE_CURRENT_LIST_DIR}/replay.c
  ${CMAKE_SOURCE_DIR}/user/base/allowance.c
  ${CMAKE_SOURCE_DIR}/user/base/clock.c
  ${CMAKE_SOURCE_DIR}/user/base/err.c
  ${CMAKE_SOURCE_DIR}/user/base/log.c
  ${CMAKE_SOURCE_DIR}/user/base/hash.c
  ${CMAKE_SOURCE_DIR}/user/base/file.c
  ${CMAKE_SOURCE_DIR}/user/base/partial.c
  ${CMAKE_SOURCE_DIR}/user/base/json.c
  ${CMAKE_SOURCE_DIR}/user/symbolize/code.c
  ${CMAKE_SOURCE_DIR}/user/symbolize/linetable.c
  ${CMAKE_SOURCE_DIR}/user/symbolize/pystring.c
  ${CMAKE_SOURCE_DIR}/user/target/debug_offsets.c
  ${CMAKE_SOURCE_DIR}/user/target/elf.c
  ${CMAKE_SOURCE_DIR}/user/target/maps.c
  ${CMAKE_SOURCE_DIR}/user/target/mem.c
  ${CMAKE_SOURCE_DIR}/user/target/offsets.c
  ${CMAKE_SOURCE_DIR}/user/target/proc.c
  ${CMAKE_SOURCE_DIR}/user/target/c_library.c
  ${CMAKE_SOURCE_DIR}/user/target/interpreter_file.c
  ${CMAKE_SOURCE_DIR}/user/target/runtime.c
  ${CMAKE_SOURCE_DIR}/user/target/version_scan.c)
target_link_libraries(unwind_replay PRIVATE unwind_host PkgConfig::LIBELF)
add_test(NAME unwind/replay
  COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/replay.py
    $<TARGET_FILE:unwind_replay>)
set_tests_properties(unwind/replay PROPERTIES LABELS unit TIMEOUT 600)

# Seeds are made by unwind_seeds FOLDER. 20000 mutations take about three seconds.
add_executable(unwind_seeds ${CMAKE_CURRENT_LIST_DIR}/seeds.c)
target_link_libraries(unwind_seeds PRIVATE unwind_host)
set(unwind_fuzz ${CMAKE_SOURCE_DIR}/tests/fuzz)
add_executable(fuzz_unwind
  ${unwind_fuzz}/unwind/fuzz_unwind.c
  ${CMAKE_SOURCE_DIR}/user/base/err.c
  ${CMAKE_SOURCE_DIR}/user/target/offsets.c)
target_link_libraries(fuzz_unwind PRIVATE unwind_host)
target_include_directories(fuzz_unwind PRIVATE ${CMAKE_SOURCE_DIR}/tests)
add_dependencies(fuzz_programs fuzz_unwind)
if(PYEBPF_FUZZ)
  target_link_options(fuzz_unwind PRIVATE -fsanitize=fuzzer)
else()
  target_sources(fuzz_unwind PRIVATE ${unwind_fuzz}/replay.c)
  add_test(NAME fuzz/unwind COMMAND fuzz_unwind ${unwind_fuzz}/corpus/unwind)
  set_tests_properties(fuzz/unwind PROPERTIES LABELS unit TIMEOUT 300)
endif()
