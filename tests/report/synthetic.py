"""Run folders with made-up evidence, of any size and as odd as one likes."""

import numpy as np
import pyarrow as pa

from attnaudit.api.audits import conclude
from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.summary import statistics, summarise
from attnaudit.claims import RecordKind
from attnaudit.claims.registry import claims_named
from attnaudit.records.audit import AuditRun
from attnaudit.records.audit_file import AuditFile, AuditIdentity
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.json_file import plain
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.records.schema import SCHEMA

REFERENCES = ("observed", "random_projection", "gaussian", "other_head", "best_projection", "planted", "untrained")
#: Centre of the observed heads; planted ones have the ideal, which is 1 or 0.
MEASURES = {
    "column_cosine_matched": 0.15,
    "procrustes": 0.25,
    "subspace_overlap": 0.05,
    "value_subspace_overlap": 0.2,
    "eigenvector_residual": 0.95,
    "centering_defect": 0.2,
    "projection_alignment_matched": 0.1,
    "projection_alignment_rotated": 0.2,
    "projection_error_matched": 9.0,
    "projection_error_rotated": 8.0,
    "projection_error_floor": 7.0,
    "linear_cka": 0.1,
    "kernel_cka": 0.3,
    "eigenvalue_max": 1e-3,
    "eigenvalue_mean": 1e-4,
    "eigenvalue_min": 1e-5,
    "eigenvalue_bound_ratio": 0.8,
    "phi_norm2": 1e-2,
    "output_norm2": 3.0,
    "kernel_rank": 190.0,
}
PLANTED = {"eigenvector_residual": 0.0, "centering_defect": 0.0}
JUDGED = ("kpca-values", "kpca-eigenvectors")


def write_run(
    path,
    *,
    model="model",
    layers=2,
    heads=3,
    inputs=8,
    lost=0.0,
    reason="lost",
    seed=0,
    shift=0.0,
    names=None,
    references=REFERENCES,
):
    """A finished run; a share `lost` of all values is missing, half of them NaN on disk."""
    generator = np.random.default_rng(seed)
    names = names or [f"input-{place}" for place in range(inputs)]
    settings = AuditSettings(references=references[1:], seed=seed)
    identity = plain(AuditIdentity(settings, ((model, "f" * 32),), tuple((name, "0" * 32) for name in names), ()))
    folder = RunFolder(path)
    description = {
        "attnaudit": "0",
        "versions": {"torch": "2"},
        "weights": {model: "/home/me/weights"},
        "loading": {model: []},
        "parts": ["a"],
    }
    folder.open(identity, description)
    size = layers * heads * len(names)
    table = pa.concat_tables(
        [
            _sampled(_rows((model, names, layers, heads), reference, measure, values, reason), 2 * layers * heads)
            for measure in MEASURES
            for reference in references
            if _applies(measure, reference)
            for values in [_values(generator, size, reference, measure, shift, lost)]
        ]
    ).unify_dictionaries()
    notes = Notes((("broken<b>.png", "truncated"),), {"blocks.0.attn": 1e-7}, ())
    folder.parts.write("a", encode_part("a", table, notes))
    rows = folder.parts.evidence(["a"])
    folder.extend_settings(certificates=notes.certificate, eigen_solvers={"dense": size}, attention={})
    selection = settings.selection()
    summary = summarise(statistics(rows, selection, {}), notes, selection)
    measured = AuditRun(path, folder.settings(AuditFile, RunKind.AUDIT), summary, HeadRows(rows))
    conclude(measured, claims_named(JUDGED, RecordKind.AUDIT))
    return path


def _sampled(table, first):
    """The untrained network is measured on two inputs only."""
    return table.slice(0, first) if table["reference"][0].as_py() == "untrained" else table


def _applies(measure, reference):
    if measure == "kernel_rank":
        return reference == "observed"
    return reference != "best_projection" or measure == "value_subspace_overlap"


def _values(generator, size, reference, measure, shift, lost):
    if reference == "planted":
        values = np.full(size, PLANTED.get(measure, 1.0))
    else:
        centre = MEASURES[measure]
        values = centre * (1 + 0.1 * generator.standard_normal(size)) + (shift if reference == "observed" else 0)
    if lost and measure != "kernel_rank":
        values[generator.random(size) < lost] = np.nan
    return values


def _rows(shape, reference, measure, values, reason):
    model, names, layers, heads = shape
    size = len(values)
    place = np.arange(size)
    missing = np.isnan(values)

    def same(text):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), pa.array([text]))

    inputs = pa.DictionaryArray.from_arrays(pa.array((place // (layers * heads)).astype(np.int32)), pa.array(names))
    reasons = pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32), mask=~missing), pa.array([reason]))
    columns = {
        "model": same(model),
        "input": inputs,
        "layer": pa.array((place // heads % layers).astype(np.int16)),
        "head": pa.array((place % heads).astype(np.int16)),
        "window": pa.array(np.zeros(size, np.int16)),
        "theory": same("kpca"),
        "reference": same(reference),
        "repeat": pa.array(np.zeros(size, np.int16)),
        "measure": same(measure),
        "value": pa.array(values, mask=missing & (place % 2 == 0)),  # the others stay NaN
        "reason": reasons,
        "protocol": same("exact"),
        "tokens": pa.array(np.full(size, 197, np.int32)),
        "dim": pa.array(np.full(size, 64, np.int16)),
        "step": pa.nulls(size, pa.int64()),
    }
    return pa.table(columns, schema=SCHEMA)
