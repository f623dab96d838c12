"""A program that fetches source archives as pip would, and stops there: `fetch_sdists.py FOLDER NAME==VERSION…`.

`pip download` runs the set-up program of a source archive to learn what the package needs. Only the file is wanted
here, so pip finds it, with the user's own settings, certificates and passwords, and its bytes are written down. The
parts of pip that do so are made for pip alone: this runs in a process of its own.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pip._internal.commands import create_command
from pip._internal.commands.download import DownloadCommand
from pip._internal.network.utils import HEADERS

_SUFFIX = ".tar.gz"


def fetch(folder: Path, requirements: list[str]) -> None:
    """Write the source archive of each requirement into a folder."""
    command = create_command("download")
    assert isinstance(command, DownloadCommand)
    options, _ = command.parse_args(["--no-binary", ":all:"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session, ignore_requires_python=True)
        for requirement in requirements:
            name, _, version = requirement.partition("==")
            links = [own.link for own in finder.find_all_candidates(name) if str(own.version) == version]
            found = next((link for link in links if link.filename.endswith(_SUFFIX)), None)
            if found is None:
                sys.exit(f"the index has no source archive of {requirement}")
            answer = session.get(found.url_without_fragment, headers=HEADERS, stream=True)
            answer.raise_for_status()
            with (folder / Path(found.filename).name).open("wb") as written:
                shutil.copyfileobj(answer.raw, written)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]), sys.argv[2:])
