#!/usr/bin/env python3
"""Which programs Cargo built: reads its messages (--message-format=json) and writes a line for each.

A line is what the program is (test, bench, program), its name, the folder of its package and its path, with tabs between.
"""

import json
import os
import sys

for line in sys.stdin:
    message = json.loads(line)
    if message.get("reason") != "compiler-artifact" or not message.get("executable"):
        continue
    target = message["target"]
    if "proc-macro" in target["kind"]:
        continue  # Linked against the compiler's own library.
    role = "bench" if "bench" in target["kind"] else "test" if message["profile"]["test"] else "program"
    print(role, target["name"], os.path.dirname(message["manifest_path"]), message["executable"], sep="\t")
