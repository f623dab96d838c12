"""`python -m website [FOLDER]` builds the site into FOLDER, `site/` unless told otherwise."""

import sys
from pathlib import Path

from website.build import ROOT, SiteError, build

if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
    except SiteError as error:
        sys.exit(str(error))
