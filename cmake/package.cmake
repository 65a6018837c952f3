# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What is installed beside the program: man pages and completions, printed by the program itself
# from its option tables, and the docs. A .deb of it: make deb.
include(GNUInstallDirs)

set(share ${CMAKE_BINARY_DIR}/share)
file(MAKE_DIRECTORY ${share})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/user/main.c)
file(READ ${CMAKE_SOURCE_DIR}/user/main.c main)
string(REGEX MATCHALL "&command_[a-z_]+" commands "${main}")
list(TRANSFORM commands REPLACE "&command_" "")

string(JOIN " " run ${CMAKE_CROSSCOMPILING_EMULATOR}) # empty where it runs here
# share/FILE is what `pyebpf ARGUMENT...` prints.
set(printed)
function(pyebpf_prints file)
  string(JOIN " " words ${ARGN})
  add_custom_command(OUTPUT ${share}/${file}
    COMMAND sh -c "${run} '$<TARGET_FILE:pyebpf>' ${words} > '${share}/${file}'"
    DEPENDS pyebpf VERBATIM)
  list(APPEND printed ${share}/${file})
  set(printed ${printed} PARENT_SCOPE)
endfunction()

pyebpf_prints(pyebpf.1 man)
set(pages ${share}/pyebpf.1)
foreach(command ${commands})
  pyebpf_prints(pyebpf-${command}.1 man ${command})
  list(APPEND pages ${share}/pyebpf-${command}.1)
endforeach()
pyebpf_prints(pyebpf.bash completions bash)
pyebpf_prints(_pyebpf completions zsh)
pyebpf_prints(pyebpf.fish completions fish)
if(PYEBPF_STATIC) # what the packages within it ask of those who hand them on
  set(copyrights ${CMAKE_BINARY_DIR}/copyrights)
  add_custom_command(OUTPUT ${copyrights}
    COMMAND python3 -B ${CMAKE_SOURCE_DIR}/deploy/release/copyrights.py ${copyrights}
      ${CMAKE_BINARY_DIR}/pyebpf.map ${static_deps} ${CMAKE_SYSROOT}
    DEPENDS pyebpf VERBATIM)
  list(APPEND printed ${copyrights})
  install(DIRECTORY ${copyrights} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
add_custom_target(pyebpf_share ALL DEPENDS ${printed})

install(TARGETS pyebpf RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${share}/pyebpf.bash RENAME pyebpf
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${share}/pyebpf.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
# Debian's zsh looks for what packages bring in a folder of its own.
install(CODE "
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND EXISTS /etc/debian_version
      AND NOT \"\$ENV{PYEBPF_PACKAGE}\" STREQUAL \"RPM\")
    set(folder vendor-completions)
  endif()
  file(INSTALL \"${share}/_pyebpf\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${folder}\")
")
install(FILES README.md CHANGELOG.md LICENSE docs/diff.md docs/fleet.md docs/kubernetes.md docs/troubleshooting.md
    deploy/agent.yaml
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES deploy/pyebpf-agent.service DESTINATION lib/systemd/system)
install(DIRECTORY LICENSES DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Who answers for a package is who makes it: named as Debian's tools do, else as in git.
set(contact "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if(NOT DEFINED ENV{DEBEMAIL})
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} config user.name
    OUTPUT_VARIABLE name OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C ${CMAKE_SOURCE_DIR} config user.email
    OUTPUT_VARIABLE address OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(contact "${name} <${address}>")
  if(NOT address)
    cmake_host_system_information(RESULT host QUERY FQDN)
    set(contact "pyebpf <pyebpf@${host}>")
  endif()
endif()
set(PYEBPF_CONTACT "${contact}" CACHE STRING "who answers for a package: NAME <ADDRESS>")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pyebpf)
set(CPACK_PACKAGE_CONTACT "${PYEBPF_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "profiler for running Python programs, by BPF")
set(CPACK_PACKAGE_DESCRIPTION
  "Samples the Python stacks of running processes from inside the kernel: they
are not stopped, not written to and not traced. Any CPython, found by its
symbols.")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian.cmake ${CMAKE_CURRENT_LIST_DIR}/dates.cmake)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
if(NOT PYEBPF_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # dpkg-shlibdeps sees what is linked, and not what the agent loads.
  get_property(loaded GLOBAL PROPERTY pyebpf_loaded)
  set(packages)
  foreach(library ${loaded})
    execute_process(COMMAND dpkg-query -S */${library} OUTPUT_VARIABLE owner ERROR_QUIET)
    string(REGEX MATCH "^[a-z0-9.+-]+" package "${owner}")
    list(APPEND packages ${package})
  endforeach()
  string(JOIN ", " CPACK_DEBIAN_PACKAGE_DEPENDS ${packages})
endif()
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
endif()
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "GPL-2.0-only OR BSD-2-Clause")
set(CPACK_RPM_PACKAGE_AUTOREQ OFF)
set(CPACK_RPM_SPEC_MORE_DEFINE "\
%define _build_id_links none
%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1
  /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish
  /usr/share/fish/vendor_completions.d /usr/share/zsh /usr/share/zsh/vendor-completions
  /usr/share/zsh/site-functions /usr/lib/systemd /usr/lib/systemd/system)
include(CPack)
