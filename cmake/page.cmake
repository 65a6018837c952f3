# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# assets/ -> generated/page_assets.h: the page before and behind its data; generated/svg_script.h: what
# svg.js is; generated/hotlines_assets.h: what is before and behind pages of source. Of the page report.html names the style sheet and, in order, the scripts; they are
# stripped, joined by esbuild and minified, and their SHA-256 goes into the content security policy.
#
# Included by CMakeLists.txt, which makes the rule; run by it with -P, which does the work.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  file(GLOB page_assets CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/assets/*.js ${CMAKE_SOURCE_DIR}/assets/*.css
    ${CMAKE_SOURCE_DIR}/assets/*.html)
  set(page_header ${CMAKE_BINARY_DIR}/generated/page_assets.h)
  find_program(PYEBPF_ESBUILD esbuild)
  if(NOT PYEBPF_ESBUILD)
    message(STATUS "esbuild not found: HTML reports will be 50 KB larger")
  endif()
  set(svg_header ${CMAKE_BINARY_DIR}/generated/svg_script.h)
  set(hotlines_header ${CMAKE_BINARY_DIR}/generated/hotlines_assets.h)
  add_custom_command(OUTPUT ${page_header} ${svg_header} ${hotlines_header}
    COMMAND ${CMAKE_COMMAND} -DESBUILD=$<$<BOOL:${PYEBPF_ESBUILD}>:${PYEBPF_ESBUILD}>
      -DASSETS=${CMAKE_SOURCE_DIR}/assets -DHEADER=${page_header} -DSVG_HEADER=${svg_header}
      -DHOTLINES_HEADER=${hotlines_header}
      -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${page_assets} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
  add_custom_target(pyebpf_page DEPENDS ${page_header} ${svg_header} ${hotlines_header})
  return()
endif()

# Scripts keep to lines that may lose their indentation: no text spans lines, no line of text
# begins with "//".
function(read_stripped name out)
  file(READ ${ASSETS}/${name} text)
  string(REGEX REPLACE "\n[ \t]+" "\n" text "\n${text}")
  if(name MATCHES "\\.js$")
    string(REGEX REPLACE "\n//[^\n]*" "" text "${text}")
  else()
    string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
  endif()
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# The 'sha256-...' of the policy: CMake knows digests in hexadecimal only.
function(policy_hash text out)
  set(letters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 digest "${text}")
  set(base64)
  foreach(at RANGE 0 63 6)
    string(SUBSTRING "${digest}00" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING ${letters} ${index} 1 letter)
      string(APPEND base64 ${letter})
    endforeach()
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64) # 32 bytes; the rest is of the two zeros
  set(${out} "'sha256-${base64}='" PARENT_SCOPE)
endfunction()

# Cuts text at mark, which must be there once.
function(cut text mark before behind)
  string(FIND "${text}" "${mark}" at)
  string(FIND "${text}" "${mark}" last REVERSE)
  if(at EQUAL -1 OR NOT at EQUAL last)
    message(FATAL_ERROR "assets: must have once: ${mark}")
  endif()
  string(LENGTH "${mark}" length)
  string(SUBSTRING "${text}" 0 ${at} part)
  set(${before} "${part}" PARENT_SCOPE)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${text}" ${at} -1 part)
  set(${behind} "${part}" PARENT_SCOPE)
endfunction()

function(append_array name text)
  file(WRITE ${HEADER}.part "${text}")
  file(READ ${HEADER}.part bytes HEX)
  file(REMOVE ${HEADER}.part)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  set(array "static const unsigned char ${name}[] = {\n${bytes}\n};\n")
  set(header "${header}${array}" PARENT_SCOPE)
endfunction()

set(script_opens "(function (ns) {\n\"use strict\";\n")
set(script_ends "})(globalThis.pyebpf ??= {});\n")

# The browser's that are written often, and in no text: variables have short names.
set(often_used Boolean Float64Array Int32Array Number Object String Uint32Array Uint8Array document)

# A script as a module: what it hangs on `ns` it exports, what it takes from there it imports from
# all.js, which has the exports of all; so names are esbuild's to choose, and what is for tests alone
# is left out.
function(as_module text out)
  cut("${text}" "${script_opens}" before text)
  cut("${text}" "${script_ends}" text behind)
  # None has a `this` of its own: as arrows they are shorter, and need no `return`. What runs while the
  # script is read names none that stands below it. `let` is shorter than `const`.
  string(REGEX REPLACE "\n(async |)function ([A-Za-z_]+)(\\([^\n]*\\)) {\n" "\nlet \\2 = \\1\\3 => {\n"
    text "${text}")
  string(REGEX REPLACE "([^A-Za-z_])const " "\\1let " text "${text}")
  if("${text}" MATCHES "Object\\.assign\\(ns, {([^}]*)}\\)")
    set(list "${CMAKE_MATCH_0}")
    string(REGEX REPLACE "([A-Za-z_]+): ([A-Za-z_]+)" "\\2 as \\1" names "${CMAKE_MATCH_1}")
    string(REPLACE "${list}" "export {${names}}" text "${text}")
  endif()
  set(imports)
  string(REGEX REPLACE "([^A-Za-z_])ns\\.([A-Za-z_])" "\\1ns_\\2" text "${text}")
  string(REGEX MATCHALL "ns_[A-Za-z_]+" uses "${text}")
  foreach(use ${uses})
    string(SUBSTRING ${use} 3 -1 name)
    list(APPEND imports "${name} as ${use}")
  endforeach()
  string(REGEX MATCHALL "Math\\.[A-Za-z0-9]+" uses "${text}")
  foreach(use ${uses} ${often_used})
    string(REPLACE "." "_" use "${use}")
    list(APPEND imports "${use}_")
  endforeach()
  string(REGEX REPLACE "Math\\.([A-Za-z0-9]+)" "Math_\\1_" text "${text}")
  string(REPLACE ";" "|" often "${often_used}")
  string(REGEX REPLACE "([^A-Za-z0-9_.])(${often})([^A-Za-z0-9_:])" "\\1\\2_\\3" text "${text}")
  list(REMOVE_DUPLICATES imports)
  string(JOIN ", " imports ${imports})
  set(${out} "import {${imports}} from \"./all.js\";\n${text}" PARENT_SCOPE)
endfunction()

# The browser's, by the names that modules have for them.
function(globals_module modules out)
  string(REGEX MATCHALL "Math_[A-Za-z0-9]+_" uses "${modules}")
  list(REMOVE_DUPLICATES uses)
  set(names)
  foreach(use ${uses})
    string(REGEX REPLACE "Math_(.*)_" "\\1" name "${use}")
    list(APPEND names "${use} = Math.${name}")
  endforeach()
  foreach(use ${often_used})
    list(APPEND names "${use}_ = ${use}")
  endforeach()
  string(JOIN ", " names ${names})
  set(${out} "export let ${names};\n" PARENT_SCOPE)
endfunction()

# Properties of our own objects, of no data's and no browser's, that are written often and never as
# a text: esbuild gives them short names.
set(own_properties absence active allBase allRemoved baseSelf baseTotal boxes canvas chance chances
  changes classes classify colour column corner count defined depth describe distance ends exposure fills
  functions graph growth handle hatching interval isBase isFound isJudged isLast isMoved isUpward isWithin
  laws leaf least lines lineTree logRatio looked meta missing moderate nodes notch numbers opcode origin
  overview pairDf pairs parent parts pixel place ratioAt renamedFrom report restyle reveal rows scroller selected
  selfs sides site sites slots sources squares strength strings sums tested texts things tree verdict
  verdicts weight weights whole zoomTo)
string(REPLACE ";" "|" own_properties "${own_properties}")

# esbuild, where it is installed, makes the page a third smaller; without it the page works alike.
function(minify file out)
  set(text)
  execute_process(COMMAND ${ESBUILD} ${file} --bundle --minify --charset=utf8 --format=iife
    "--mangle-props=^(${own_properties})$"
    --log-level=error --target=chrome103,firefox113,safari16.4
    OUTPUT_FILE ${HEADER}.out COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${HEADER}.out text)
  file(REMOVE ${HEADER}.out)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# The scripts by their names, in order, as one.
function(join_scripts names out)
  set(joined)
  set(all "export * from \"./globals.js\";\n")
  foreach(name ${names})
    read_stripped(${name} text)
    if(ESBUILD)
      as_module("${text}" text)
      file(WRITE ${HEADER}.modules/${name} "${text}")
      string(APPEND all "export * from \"./${name}\";\n")
    endif()
    string(APPEND joined "${text}")
  endforeach()
  if(ESBUILD)
    globals_module("${joined}" globals)
    file(WRITE ${HEADER}.modules/globals.js "${globals}")
    file(WRITE ${HEADER}.modules/all.js "${all}")
    file(WRITE ${HEADER}.modules/page.js "import \"./all.js\";\n")
    minify(${HEADER}.modules/page.js joined)
    file(REMOVE_RECURSE ${HEADER}.modules)
  endif()
  set(${out} "${joined}" PARENT_SCOPE)
endfunction()

read_stripped(report.html html)
string(STRIP "${html}" html)
string(REGEX MATCHALL "<script src=\"[a-z]+\\.js\"></script>" tags "${html}")
list(TRANSFORM tags REPLACE ".*\"([a-z]+\\.js)\".*" "\\1")
join_scripts("${tags}" script)
string(REGEX REPLACE "\n?<script src=\"[a-z]+\\.js\"></script>" "" html "${html}")
read_stripped(report.css style)
if(ESBUILD)
  file(WRITE ${HEADER}.css "${style}")
  minify(${HEADER}.css style)
  file(REMOVE ${HEADER}.css)
endif()
if(ESBUILD)
  # what esbuild leaves: spaces in custom properties and conditions, which are in no text here
  string(REGEX REPLACE "([,:]) " "\\1" style "${style}")
  foreach(property accent-soft code faster line mono panel raised shadow slower)
    string(SUBSTRING ${property} 0 2 short)
    string(REGEX REPLACE "--${property}([:)])" "--${short}\\1" style "${style}")
  endforeach()
endif()
if("${script}${style}" MATCHES "</(script|style)")
  message(FATAL_ERROR "assets: \"</script\" or \"</style\" would end its element")
endif()
policy_hash("${script}" script_hash)
policy_hash("${style}" style_hash)

set(policy "default-src 'none'; script-src ${script_hash}; style-src ${style_hash}")
string(APPEND policy "; base-uri 'none'; form-action 'none'")
string(APPEND policy "; require-trusted-types-for 'script'; trusted-types 'none'")
cut("${html}" "<meta charset=\"utf-8\">" before behind)
set(meta "<meta http-equiv=\"Content-Security-Policy\" content=\"${policy}\">")
set(html "${before}<meta charset=\"utf-8\">\n${meta}${behind}")
cut("${html}" "<link rel=\"stylesheet\" href=\"report.css\">" head body)
set(data "<script id=\"pyebpf-data\" type=\"application/octet-stream\">")
cut("${body}" "${data}</script>" body behind)
string(REGEX REPLACE "=\"([A-Za-z0-9-]+)\"" "=\\1" body "${body}") # a word needs no quotes
set(before "${head}<style>${style}</style>${body}")

set(header "/* made from assets/ by cmake/page.cmake */\n")
append_array(page_head "${before}${data}")
append_array(page_tail "</script>\n<script>${script}</script>${behind}")
file(WRITE ${HEADER} "${header}")

# The script of flame graphs in SVG, which stands in them as it is.
read_stripped(svg.js svg_script)
if(ESBUILD)
  file(WRITE ${HEADER}.js "${svg_script}")
  minify(${HEADER}.js svg_script)
  file(REMOVE ${HEADER}.js)
endif()
if("${svg_script}" MATCHES "]]>")
  message(FATAL_ERROR "assets/svg.js: \"]]>\" would end its element")
endif()
set(header "/* made from assets/svg.js by cmake/page.cmake */\n")
append_array(svg_script "${svg_script}")
file(WRITE ${SVG_HEADER} "${header}")

# Pages of source lines (export -f heatmap): a style and a script that stand in each.
read_stripped(hotlines.css style)
read_stripped(hotlines.js script)
if(ESBUILD)
  file(WRITE ${HEADER}.css "${style}")
  minify(${HEADER}.css style)
  file(WRITE ${HEADER}.js "${script}")
  minify(${HEADER}.js script)
  file(REMOVE ${HEADER}.css ${HEADER}.js)
endif()
if("${script}${style}" MATCHES "</(script|style)")
  message(FATAL_ERROR "assets/hotlines: \"</script\" or \"</style\" would end its element")
endif()
policy_hash("${script}" script_hash)
policy_hash("${style}" style_hash)
set(policy "default-src 'none'; script-src ${script_hash}; style-src ${style_hash}")
string(APPEND policy "; base-uri 'none'; form-action 'none'")
set(meta "<meta http-equiv=\"Content-Security-Policy\" content=\"${policy}\">")
set(header "/* made from assets/hotlines.* by cmake/page.cmake */\n")
append_array(hotlines_head "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n${meta}
<meta name=\"viewport\" content=\"width=device-width\">\n<style>${style}</style>\n")
append_array(hotlines_tail "<script>${script}</script>\n</html>\n")
file(WRITE ${HOTLINES_HEADER} "${header}")
