"""Write requirements/lock.txt: every package that `make` installs, with the hashes of its files.

    python -m venv /tmp/lock && /tmp/lock/bin/pip install pip-tools
    /tmp/lock/bin/python requirements/lock.py            # keeps the versions; --upgrade-package NAME takes a newer one

It asks the index for every package, which takes minutes. torch is locked as its CPU build or any other that needs no
CUDA packages; hashes of its other builds are kept as long as its version stays.
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


def entries(text: str) -> dict[str, str]:
    """The pinned requirements of a lock file with their hashes, by name."""
    return {name: whole for whole, name in re.findall(r"^(([\w.-]+)==\S+(?: \\\n +--hash=\S+)+)", text, re.MULTILINE)}


def tidied(written: str, before: str) -> str:
    """Without the package itself and comments; torch without the mark of its build, and with the hashes it had."""
    found = entries(written)
    torch, old = found["torch"].replace("+cpu", ""), entries(before).get("torch", "")
    hashes = set(re.findall(r"--hash=\S+", torch + (old if _pin(old) == _pin(torch) else "")))
    found["torch"] = " \\\n    ".join([_pin(torch), *sorted(hashes)])
    return HEADER + "".join(f"{entry}\n" for _, entry in sorted(found.items()))


def _pin(entry: str) -> str:
    return entry.partition(" ")[0]


if __name__ == "__main__":
    before = LOCK.read_text()
    command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *sys.argv[1:], f"--output-file={LOCK}"]
    subprocess.run([*command, str(FOLDER.parent / "pyproject.toml"), str(FOLDER / "lock.in")], check=True)
    LOCK.write_text(tidied(LOCK.read_text(), before))
