"""Write requirements/lock.txt: every package that `make` installs, with the hashes of its files.

    python -m venv /tmp/lock && /tmp/lock/bin/pip install pip-tools
    /tmp/lock/bin/python requirements/lock.py            # keeps the versions; --upgrade-package NAME takes a newer one

It asks the index for every package, which takes minutes. For Linux torch is locked as its CPU build, because the other
one needs gigabytes of CUDA packages. Its builds for other systems are kept as they are: for a new version of torch, add
them by hand.
"""

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
LOCK = FOLDER / "lock.txt"
HEADER = """\
# What `make` installs, with the hashes of all files: pip install --require-hashes --requirement requirements/lock.txt
# Written by requirements/lock.py.
"""
OPTIONS = (
    *("--extra", "dev", "--generate-hashes", "--strip-extras", "--allow-unsafe", "--quiet"),
    *("--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-options"),
)


LINUX, ELSEWHERE = ('sys_platform == "linux"', 'sys_platform != "linux"')


def entries(text: str) -> list[str]:
    """The pinned requirements of a lock file with their hashes."""
    return re.findall(r"^[\w.-]+==[^\\\n]+(?: \\\n +--hash=\S+)+", text, re.MULTILINE)


def tidied(written: str, before: str) -> str:
    """Without the package itself and comments; on Linux torch is the CPU build, elsewhere what the lock had."""
    found = [entry for entry in entries(written) if not entry.startswith("torch==")]
    (torch,) = (entry for entry in entries(written) if entry.startswith("torch=="))
    pin, _, hashes = torch.partition(" ")
    found.append(f"{pin} ; {LINUX} {hashes}")
    found += [entry for entry in entries(before) if entry.startswith(f"{pin.partition('+')[0]} ; {ELSEWHERE}")]
    return HEADER + "".join(f"{entry}\n" for entry in sorted(found))


if __name__ == "__main__":
    before = LOCK.read_text()
    command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *sys.argv[1:], f"--output-file={LOCK}"]
    subprocess.run([*command, str(FOLDER.parent / "pyproject.toml"), str(FOLDER / "lock.in")], check=True)
    LOCK.write_text(tidied(LOCK.read_text(), before))
