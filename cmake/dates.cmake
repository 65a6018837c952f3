# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# With SOURCE_DATE_EPOCH what is packed has that date: a package of the same source is the same bytes.
# Run by CPack in the folder that it will pack.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${CPACK_TEMPORARY_DIRECTORY} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
