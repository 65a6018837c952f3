# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes of what is installed what Debian's policy asks of a package: copyright and changelog under
# their names, man pages compressed. Run by CPack in the folder that it will pack.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(share ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
set(doc ${share}/doc/pyebpf)

# Policy 12.5: the GPL is in every Debian system, other licenses are quoted.
file(READ ${doc}/LICENSES/BSD-2-Clause.txt bsd)
string(REGEX MATCH "Copyright [^\n]*" holder "${bsd}")
string(REPLACE "${holder}\n\n" "" bsd "${bsd}")
string(REGEX REPLACE "\n$" "" bsd "${bsd}")
string(REPLACE "\n\n" "\n.\n" bsd "${bsd}")
string(REPLACE "\n" "\n " bsd "${bsd}")
string(REGEX REPLACE "^Copyright \\(c\\) " "" holder "${holder}")
string(TIMESTAMP year "%Y" UTC)
file(WRITE ${doc}/copyright "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: pyebpf

Files: *
Copyright: ${year} ${holder}
License: GPL-2 or BSD-2-clause

License: GPL-2
 Version 2 of the GNU General Public License only. On Debian systems its text is
 in /usr/share/common-licenses/GPL-2.

License: BSD-2-clause
 ${bsd}
")

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog "\
pyebpf (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What is new is in CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")

file(GLOB pages ${share}/man/man1/*)
execute_process(COMMAND gzip -9 -n ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
