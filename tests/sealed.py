"""JSON files of run folders, edited by hand and given the digest that belongs to the edited content."""

import json

from attnaudit.numerics.digest import digest


def content_of(file):
    """What a file holds beside its digest."""
    content = json.loads(file.read_text())
    content.pop("digest")
    return content


def seal(file, content):
    """Write content of any kind, valid or not, with its digest."""
    file.write_text(json.dumps({**content, "digest": digest(content)}))
