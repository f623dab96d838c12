"""The page on invariance says which measures and claims move with the weights of an unchanged network: is it true?"""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
import torch

from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.measures import MeasureInput, evaluate, measure_named
from attnaudit.measures.gauges import Gauges
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.references.reparametrised import random_gauge
from attnaudit.protocol import Protocol
from attnaudit.theories.fitting import FittedTheory
from attnaudit.theories.registry import ANY_GAUGE, THEORIES
from tests.heads import make_heads
from tests.measures.references.case import labelled

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "invariance.md"
INPUTS, HEADS, TOKENS, DIM = 8, 2, 30, 5
#: Below the first a number stays, above the second it moves; nothing may lie between.
SAME, OTHER = 1e-6, 1e-3


def layer():
    """Skewed keys of ordinary size, and values that share something with them."""
    generator = torch.Generator().manual_seed(0)
    shape = (INPUTS * HEADS, TOKENS, DIM)
    query, key, noise = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3))
    key = 0.6 * (key + 0.3 * key.square())
    return labelled(make_heads(query, key, key + noise), inputs=INPUTS)


def rotation(matrices):
    left, _, right = torch.linalg.svd(matrices)
    return left @ right


def with_keys(heads, mixing, shift):
    """Q → QM, K → KM⁻ᵀ + 1cᵀ."""
    return replace(heads, query=heads.query @ mixing, key=torch.linalg.solve(mixing, heads.key.mT).mT + shift)


def with_values(heads, mixing, shift):
    """V → VM + 1mᵀ, and the outputs that follow."""
    return replace(heads, value=heads.value @ mixing + shift, output=heads.output @ mixing + shift)


def transformed(name):
    """The heads of the same network with other weights."""
    heads = layer()
    gauge, one = random_gauge(heads, 0, 0), torch.eye(DIM, dtype=torch.float64)
    shift = gauge.shift[:, None]
    return {
        "K rotated": lambda: with_keys(heads, rotation(gauge.keys), 0),
        "K mixed": lambda: with_keys(heads, gauge.keys, 0),
        "K shifted": lambda: with_keys(heads, one, shift),
        "V scaled": lambda: with_values(heads, 3 * one, 0),
        "V rotated": lambda: with_values(heads, rotation(gauge.values), 0),
        "V mixed": lambda: with_values(heads, gauge.values, 0),
        "V shifted": lambda: with_values(heads, one, shift),
    }[name]()


@dataclass(frozen=True)
class Row:
    """A line of a table: what it is about, and `stays` or `moves` by the name of a transformation."""

    names: tuple[str, ...]
    cells: dict[str, str]


def table(first):
    """The rows of the table whose first column has this title."""
    lines = PAGE.read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {first} |"))
    titles, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines[start : lines.index("", start)]
    )
    names = len([title for title in titles if title in ("claim", "measure", "theory")])
    return [
        Row(tuple(cell.strip("`") for cell in row[:names]), dict(zip(titles[names:], row[names:], strict=True)))
        for row in rows
    ]


MEASURES, OF_CLAIMS = table("measure"), table("claim")
TRANSFORMATIONS = list(MEASURES[0].cells)


def claims():
    """Claims on the heads of audited models that are decided by scores, without those of rival theories."""
    of_heads = [claim for claim in CLAIMS.values() if claim.reads == (RecordKind.AUDIT,) and claim.decide is None]
    return [claim for claim in of_heads if not isinstance(THEORIES[claim.theory], FittedTheory)]


@cache
def measured(transformation, measure, theory):
    heads = layer() if transformation is None else transformed(transformation)
    if theory == ANY_GAUGE:
        return in_fitted_gauge(heads)
    numbers = evaluate([measure_named(measure)], MeasureInput.of(heads, theory=THEORIES[theory]))[measure]
    assert numbers.values.isfinite().all()
    return numbers.values


def in_fitted_gauge(heads):
    gauges = Gauges({f"input-{place}": place % 2 for place in range(INPUTS)}, seed=0, repeats=1, steps=3)
    keys = KeyKernel(heads, Protocol.EXACT)
    gauges.add(keys)
    gauges.fit()
    return next(overlaps for name, _, overlaps in gauges.overlaps(keys) if name == "observed")


@cache
def change(transformation, measure, theory):
    """How far the numbers of some head are from those before, relative to their size."""
    before, after = (measured(own, measure, theory) for own in (None, transformation))
    return ((after - before).abs() / before.abs()).max().item()


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_the_network_is_the_same(transformation):
    heads = transformed(transformation)
    torch.testing.assert_close(heads.attention(), layer().attention(), rtol=0, atol=1e-12)
    torch.testing.assert_close(heads.replayed(), heads.output, rtol=0, atol=1e-12)


@pytest.mark.parametrize("row", MEASURES, ids=lambda row: "-".join(row.names))
def test_a_measure_moves_where_the_page_says_so(row):
    found = {own: change(own, *row.names) for own in TRANSFORMATIONS}
    assert not {own: size for own, size in found.items() if SAME < size < OTHER}
    assert {own: "moves" if size > OTHER else "stays" for own, size in found.items()} == row.cells


@pytest.mark.parametrize("row", OF_CLAIMS, ids=lambda row: row.names[0])
def test_a_claim_stays_where_all_that_decides_it_does(row):
    claim = CLAIMS[row.names[0]]
    rows = [own for own in MEASURES if own.names in {(name, claim.theory) for name in claim.decided_by}]
    assert len(rows) == len(claim.decided_by)
    for own, word in row.cells.items():
        assert word == ("stays" if all(entry.cells[own] == "stays" for entry in rows) else "moves"), own


def test_everything_that_decides_or_is_shown_is_in_the_tables():
    wanted = {(name, claim.theory) for claim in claims() for name in (*claim.decided_by, *claim.shown)}
    assert wanted <= {row.names for row in MEASURES}
    assert {row.names[0] for row in OF_CLAIMS} == {claim.name for claim in claims()}
