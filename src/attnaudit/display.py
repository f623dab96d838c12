"""How names look everywhere, and our objects in a notebook: a caption and a small table, everything escaped."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape

#: A longer text says no more to a reader, and a hostile one could be of any length.
_LONGEST = 200


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The text, or its beginning and end with … between them."""
    if len(text) <= longest:
        return text
    kept = longest - 1
    return f"{text[: kept - kept // 3]}…{text[-(kept // 3) :]}"


def counted(number: int, noun: str) -> str:
    """A number and its noun, such as `1 head` or `1,024 heads`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def enumerated(words: Sequence[str], last: str = "or") -> str:
    """Words in a sentence.

    >>> enumerated(["fog"]), enumerated(["fog", "snow"]), enumerated(["fog", "snow", "frost"], "and")
    ('fog', 'fog or snow', 'fog, snow and frost')
    """
    return f" {last} ".join([*([", ".join(words[:-1])] if words[1:] else []), *words[-1:]])


def told_apart(names: Sequence[str], examples: Sequence[str]) -> list[str]:
    """Names that occur once as they are, others with an example of what they stand for, or a number if that is alike.

    >>> told_apart(["rpc", "softmax", "rpc"], ["runs/a", "runs/b", "runs/c"])
    ['rpc (runs/a)', 'softmax', 'rpc (runs/c)']
    """
    longer = [
        name if names.count(name) == 1 else f"{name} ({example})" for name, example in zip(names, examples, strict=True)
    ]
    return [
        name if longer.count(name) == 1 else f"{name} no. {longer[: place + 1].count(name)}"
        for place, name in enumerate(longer)
    ]


def readable(name: str) -> str:
    r"""The name of a file as text that every file and terminal can take; different names stay different.

    Bytes that are not UTF-8 and control characters are written as `\xff` or `\u2028`, and a backslash as two. All
    other names are unchanged.
    """
    return "".join(_escaped(character) for character in name)


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp"):
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # where Python puts the bytes of a file name that are not UTF-8
        code -= 0xDC00
    elif code >= 0x80:
        return f"\\u{code:04x}"
    return f"\\x{code:02x}"


def without_folders(place: str) -> str:
    """The last two parts of a path, without the folders of this machine; any other text as it is.

    >>> without_folders("/home/ada/models/vit.safetensors"), without_folders("from a==1.0, licence MIT/X11")
    ('models/vit.safetensors', 'from a==1.0, licence MIT/X11')
    """
    return "/".join(place.split("/")[-2:]) if place.startswith("/") else place


def escaped_if_unencodable(error: UnicodeError) -> tuple[str, int]:
    r"""What a stream shows of characters that it cannot encode; an error handler for `codecs.register_error`.

    Bytes of file names that are not UTF-8 are shown as `\xff`, as in `readable`.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    shown = (_escaped(each) for each in characters)
    return "".join(each.encode("ascii", "backslashreplace").decode() for each in shown), error.end


def html_table(caption: str, rows: Iterable[tuple[str, ...]]) -> str:
    """A table whose first column names what the others say."""
    lines = []
    for name, *cells in rows:
        content = "".join(f"<td style='text-align:left'>{_text(cell)}</td>" for cell in cells)
        lines.append(f"<tr><th scope='row' style='text-align:left'>{_text(name)}</th>{content}</tr>")
    title = f"<caption style='text-align:left;font-weight:bold'>{_text(caption)}</caption>"
    return f"<table>{title}<tbody>{''.join(lines)}</tbody></table>"


def _text(text: str) -> str:
    return f"<bdi>{escape(shortened(text))}</bdi>"
