# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""brief_children.py FILE COUNT: so many processes, one after the other, that live for 50 ms of CPU time
each: FILE is workloads/brief.py. Truth: {"children": [what each says of itself]}.
"""
import json
import subprocess
import sys

options = [word for name in sys._xoptions for word in ("-X", name)]
command = [sys.executable, *options, sys.argv[1], "python"]
sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
children = [json.loads(subprocess.check_output(command)) for _ in range(int(sys.argv[2]))]
sys.stdout.write(json.dumps({"children": children}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
