r"""Formulas between dollar signs as MathML, which browsers draw themselves: no script, no font, no network.

`$…$` is inline, `$$…$$` a block of its own, as on git hosts. Code is left alone.
"""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

_CODE = r"(?P<ticks>`+).+?(?P=ticks)"
_BLOCK = r"\$\$(?P<block>.+?)\$\$"
_INLINE = r"(?<![\\$\w])\$(?P<inline>[^$\s](?:[^$\n]|\n(?!\n))*?(?<=\S))\$(?![\d$])"
#: Letters in another style: browsers know upright and slanted ones only, the rest are characters of their own.
_STYLED = {'<mi mathvariant="double-struck">R</mi>': "<mi>ℝ</mi>", '<mn mathvariant="bold">1</mn>': "<mn>𝟏</mn>"}
_MATHS = re.compile(f"{_CODE}|{_BLOCK}|{_INLINE}", re.DOTALL)


def formula(latex: str, display: str) -> str:
    """A formula as MathML.

    Raises:
        ValueError: it has a letter in a style for which `_STYLED` has no character.
    """
    drawn = str(convert(latex, display=display))
    for letter, character in _STYLED.items():
        drawn = drawn.replace(letter, character)
    unknown = re.search(r'mathvariant="(?!normal)[^"]*">[^<]*', drawn)
    if unknown:
        raise ValueError(f"Browsers do not draw {unknown[0]!r} in {latex!r}: give website.mathml its character.")
    return drawn


class _Formulas(Preprocessor):
    """Puts every formula where Markdown does not look for emphasis."""

    def run(self, lines: list[str]) -> list[str]:
        """The page with a placeholder for each formula."""
        return _MATHS.sub(self._stored, "\n".join(lines)).split("\n")

    def _stored(self, found: re.Match[str]) -> str:
        if found["ticks"]:
            return found[0]
        kind = "block" if found["block"] else "inline"
        return str(self.md.htmlStash.store(formula(found[kind], kind)))


class Formulas(Extension):
    """The Markdown extension."""

    def extendMarkdown(self, md: Markdown) -> None:
        """After fenced code has been put away (25), before HTML is looked for (20)."""
        md.preprocessors.register(_Formulas(md), "formulas", 22)


def makeExtension(**settings: object) -> Extension:
    """What Markdown calls to load an extension by the name of its module."""
    return Formulas(**settings)
