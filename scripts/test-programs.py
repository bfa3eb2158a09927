#!/usr/bin/env python3
"""Which programs Cargo built: reads its messages (--message-format=json) and writes a line for each.

A line is what the program is (test, macro for the tests of macros, bench, program), its name, the folder of its package and its path, with tabs between.
"""

import json
import os
import sys

for line in sys.stdin:
    message = json.loads(line)
    if message.get("reason") != "compiler-artifact" or not message.get("executable"):
        continue
    target = message["target"]
    kind = target["kind"]
    role = "bench" if "bench" in kind else "program" if not message["profile"]["test"] else "macro" if "proc-macro" in kind else "test"
    print(role, target["name"], os.path.dirname(message["manifest_path"]), message["executable"], sep="\t")
