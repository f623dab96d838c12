"""Which kernels of linear algebra the numbers of an audit need, and how often: counted from the evidence itself.

For every head, reference and measure that has a row, `NEEDS` names the kernels that no way of computing it can do
without, and over which heads, references and theories their results are shared: values have one triangular factor,
whatever the theory, and keys have one spectrum, whatever the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from attnaudit.measures.references.best_projection import BEST_PROJECTION, BEST_PROJECTION_FITTED
from attnaudit.measures.references.planted import PLANTED, PLANTED_WITH_NOISE
from attnaudit.measures.references.reparametrised import REPARAMETRISED, REPARAMETRISED_NULL
from attnaudit.measures.references.untrained import UNTRAINED
from attnaudit.records.evidence import Evidence
from attnaudit.records.schema import OBSERVED

_HEAD = ("input", "layer", "head", "window")
_FITTED = (BEST_PROJECTION.name, BEST_PROJECTION_FITTED.name)
#: Over what the result of a kernel differs, beside the head.
_KEYS, _VALUES, _PAIR, _PREDICTION = (
    ("keys",),
    ("keys", "values"),
    ("theory", "reference", "repeat"),
    ("keys", "theory"),
)


@dataclass(frozen=True)
class Need:
    """A kernel that some measures need, once for all rows that are alike in the columns `per`."""

    stage: str
    kernel: str
    measures: tuple[str, ...]
    per: tuple[str, ...] = _PAIR
    theory: str | None = None
    #: Whether the rows are only those of planted values, or only the others; all if None.
    planted: bool | None = None
    references: tuple[str, ...] = ()


_COLUMNS = ("column_cosine_matched", "procrustes")
_SPANS = ("value_subspace_overlap", "principal_angle_median")
_COEFFICIENTS = ("eigenvector_residual", "gamma_abs", "gamma_rel")
_ALIGNED = ("projection_alignment_matched", "projection_error_matched")
_ROTATED = ("projection_alignment_rotated", "projection_error_rotated")
_TOKENS = ("matched_cosine_mean", "matched_cosine_max")
#: One product of predicted and own columns is enough for these: V̇ = QR, and centring subtracts a product of means.
_PRODUCTS = (*_COLUMNS, *_SPANS, "linear_cka", "linear_cka_debiased")
_DRAWN = ("gaussian", "rotated", PLANTED_WITH_NOISE.name)
NEEDS = (
    Need("Gram", "gram", _COLUMNS, _KEYS, "kpca"),
    Need("eigen-solve", "eigenpairs", _COLUMNS, _KEYS, "kpca"),
    Need("eigen-solve", "standardised eigenvalues", ("standardised_eigenvalue_max",), _KEYS),
    Need("singular vectors", "singular vectors", _COLUMNS, ("attention",), "ksvd"),
    Need("references", "draw", _COLUMNS, _VALUES, references=_DRAWN),
    Need("references", "factor", _COLUMNS, _VALUES, references=("rotated",)),
    Need("references", "product", _COLUMNS, _VALUES, references=("rotated",)),
    Need("references", "projection", _COLUMNS, _VALUES, references=("random_projection", REPARAMETRISED_NULL.name)),
    Need("references", "outputs", _ALIGNED, _VALUES),
    Need("assignment", "assignment of columns", ("column_cosine_matched",), planted=False),
    Need("assignment", "assignment of planted columns", ("column_cosine_matched",), planted=True),
    Need("assignment", "assignment of columns", _ALIGNED, planted=False),
    Need("assignment", "assignment of planted columns", _ALIGNED, planted=True),
    Need("assignment", "assignment of tokens", _TOKENS, planted=False),
    Need("assignment", "assignment of planted tokens", _TOKENS, planted=True),
    Need("measures: columns", "product", _PRODUCTS),
    Need("measures: columns", "singular values", ("procrustes",)),
    Need("measures: subspace", "factor", _SPANS, _VALUES),
    Need("measures: subspace", "factor", _SPANS, _PREDICTION),
    Need("measures: subspace", "singular values", ("principal_angle_median",)),
    Need("measures: eigenvectors", "image", _COEFFICIENTS),
    Need("measures: eigenvectors", "sort", ("gamma_abs", "gamma_rel")),
    Need("measures: eigenvectors", "factor", ("subspace_overlap",)),
    Need("measures: eigenvectors", "product", ("subspace_overlap",)),
    Need("measures: projection", "outputs", _ALIGNED, _KEYS),
    Need("measures: projection", "product", _ALIGNED),
    Need("measures: projection", "singular values", _ROTATED),
    Need("measures: cosine", "products of tokens", _TOKENS),
    Need("measures: cka", "product", ("linear_cka",), _VALUES),
    Need("measures: cka", "product", ("linear_cka",), _PREDICTION),
    Need("measures: cka", "products of tokens", ("kernel_cka",), _VALUES),
    Need("measures: cka", "products of tokens", ("kernel_cka",), _PREDICTION),
    Need("measures: cka", "radial kernel", ("kernel_cka",), _VALUES),
    Need("measures: cka", "radial kernel", ("kernel_cka",), _PREDICTION),
    Need("best projection", "sums", _SPANS, _PREDICTION, references=(OBSERVED,)),
    Need("best projection", "overlap", _SPANS, references=_FITTED),
)


@dataclass(frozen=True)
class Needs:
    """How often the evidence needs each kernel, by stage."""

    counts: Mapping[tuple[str, str], int]
    heads: int

    @staticmethod
    def of(evidence: Evidence) -> Needs:
        """Count the rows that have a value."""
        columns = (*_HEAD, "theory", "reference", "repeat", "measure", "value")
        table = evidence.where(*columns)
        table = table.filter(pc.is_valid(table["value"]))
        for name in ("input", "theory", "reference", "measure"):
            table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
        table = _with_owners(table)
        fitted = any(name in pc.unique(table["reference"]).to_pylist() for name in _FITTED)
        counts: dict[tuple[str, str], int] = {}
        for need in NEEDS:
            if need.kernel == "sums" and not fitted:
                continue
            key = need.stage, need.kernel
            counts[key] = counts.get(key, 0) + _distinct(_rows_of(table, need), need.per)
        layers = _rows_of(table, Need("", "", _SPANS, references=_FITTED))
        counts["best projection", "leading projection"] = (
            layers.group_by(["layer", "head", "theory"]).aggregate([]).num_rows * 2
        )
        return Needs(counts, _distinct(table.filter(pc.equal(table["reference"], OBSERVED)), ()))


def _with_owners(table: pa.Table) -> pa.Table:
    """With columns that say whose keys, attention and values a row has: those of references differ, or do not."""
    reference, repeat = table["reference"], table["repeat"].cast(pa.string())
    gauge = pc.is_in(reference, pa.array([REPARAMETRISED.name, REPARAMETRISED_NULL.name]))
    twin = pc.if_else(pc.equal(reference, UNTRAINED.name), "twin", "")
    keys = pc.if_else(gauge, pc.binary_join_element_wise("gauge", repeat, "/"), twin)
    planted = pc.is_in(reference, pa.array([PLANTED.name, PLANTED_WITH_NOISE.name]))
    values = pc.binary_join_element_wise(reference, repeat, pc.if_else(planted, table["theory"], ""), "/")
    return table.append_column("keys", keys).append_column("attention", twin).append_column("values", values)


def _rows_of(table: pa.Table, need: Need) -> pa.Table:
    wanted = pc.is_in(table["measure"], pa.array(need.measures))
    reference = table["reference"]
    if need.references:
        wanted = pc.and_(wanted, pc.is_in(reference, pa.array(need.references)))
    else:
        wanted = pc.and_(wanted, pc.invert(pc.is_in(reference, pa.array(_FITTED))))
    if need.theory is not None:
        wanted = pc.and_(wanted, pc.equal(table["theory"], need.theory))
    if need.planted is not None:
        planted = pc.is_in(reference, pa.array([PLANTED.name, PLANTED_WITH_NOISE.name]))
        wanted = pc.and_(wanted, planted if need.planted else pc.invert(planted))
    if need.stage == "references" and not need.references:  # observed heads, and networks, have values already
        own = pa.array([OBSERVED, UNTRAINED.name, REPARAMETRISED.name])
        wanted = pc.and_(wanted, pc.invert(pc.is_in(reference, own)))
    return table.filter(wanted)


def _distinct(table: pa.Table, per: Iterable[str]) -> int:
    return int(table.group_by([*_HEAD, *per]).aggregate([]).num_rows)
