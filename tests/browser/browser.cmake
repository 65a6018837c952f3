# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The page: its pure scripts by node --test, and all of it in a browser.
find_program(PYEBPF_NODE node)
if(PYEBPF_NODE)
  set(node ${PYEBPF_NODE} --test-reporter=tap)
else()
  set(node sh -c "echo 'SKIPPED: no node: make deps'; exit 77")
endif()
file(GLOB asset_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/assets/*.test.js)
foreach(source ${asset_tests})
  get_filename_component(name ${source} NAME_WE)
  add_test(NAME assets/${name} COMMAND ${CMAKE_COMMAND} -E env
    PAGES=$<TARGET_FILE:pages> ${node} ${source})
  set_tests_properties(assets/${name} PROPERTIES LABELS unit SKIP_RETURN_CODE 77)
endforeach()

# Without the label "unit": once, in the build whose speed is a user's, is enough.
add_test(NAME browser/packages COMMAND ${node} ${CMAKE_CURRENT_LIST_DIR}/packages.js)
set_tests_properties(browser/packages PROPERTIES LABELS browser FIXTURES_SETUP browser_packages
  SKIP_RETURN_CODE 77 TIMEOUT 300)
file(GLOB browser_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.test.js)
foreach(source ${browser_tests})
  if(NOT TARGET pyebpf)
    continue()
  endif()
  get_filename_component(name ${source} NAME_WE)
  add_test(NAME browser/${name} COMMAND ${CMAKE_COMMAND} -E env
    PYEBPF=$<TARGET_FILE:pyebpf> PAGES=$<TARGET_FILE:pages>
    WAITS_RECORDING=$<TARGET_FILE:waits_recording> ${node} ${source})
  set_tests_properties(browser/${name} PROPERTIES LABELS browser SKIP_RETURN_CODE 77 TIMEOUT 900
    FIXTURES_REQUIRED browser_packages)
endforeach()
if(TARGET pyebpf_export AND TARGET pyebpf_diff)
  add_executable(pages ${CMAKE_CURRENT_LIST_DIR}/pages.c)
  target_link_libraries(pages PRIVATE pyebpf_export pyebpf_diff)
endif()
