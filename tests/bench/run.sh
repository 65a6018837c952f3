#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Measures pyebpf beside the other profilers of this machine: see run.py --help.
set -u
here=$(dirname "$0")
sh "$here/install.sh"
exec python3 -B "$here/run.py" "$@"
