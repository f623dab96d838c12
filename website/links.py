"""Links between pages whose places in the repository and on the site differ."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def moved_links(text: str, source: str, path: Path, places: Mapping[str, Path]) -> str:
    """A page's text with links that hold on the site.

    `source` is the page's path in the repository, `path` its place on the site, `places` says where every file of the
    repository that is on the site has gone. Other links stay as they are: the generator warns of those that break.
    """

    def moved(link: re.Match[str]) -> str:
        opening, target, anchor, closing = link.groups()
        known = places.get(os.path.normpath(os.path.join(os.path.dirname(source), target)))
        if known is not None:
            target = os.path.relpath(known, path.parent)
        return f"{opening}{target}{anchor or ''}{closing}"

    return _LINK.sub(moved, text)
