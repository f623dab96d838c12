"""Whether a lock file can be installed here: exit code 0 if it can.

It is written for Python 3.11, and on Linux it has the CPU build of torch, which not every index has. If that build is
there, the lock holds, and a file with another hash is an error: nothing else is tried then.
"""

import re
import subprocess
import sys
from pathlib import Path

LOCKED_PYTHON = (3, 11)


def torch_on_linux(lock: str) -> str:
    """The pinned build of torch for Linux."""
    (pin,) = re.findall(r'^(torch==\S+) ; sys_platform == "linux"', lock, re.MULTILINE)
    return pin


def found_by_pip(requirement: str) -> bool:
    """Whether pip would install this, which it is asked without installing it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", requirement]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    suits = sys.version_info[:2] == LOCKED_PYTHON
    if suits and sys.platform == "linux":
        suits = found_by_pip(torch_on_linux(Path(sys.argv[1]).read_text()))
    sys.exit(not suits)
