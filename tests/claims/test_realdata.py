"""Verdicts on a real model, and what its references measure."""

import os
from pathlib import Path

import pytest

from attnaudit.api.audits import conclude
from attnaudit.audit import AuditSettings, measure, plan_audit
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_named
from attnaudit.protocol import Protocol
from attnaudit.sources import parse_model
from attnaudit.sources.images import choose_images, find_images, image_shards
from attnaudit.sources.inputs import shard_size
from attnaudit.statistics.decisions import LEAST_INPUTS

pytestmark = [pytest.mark.realdata, pytest.mark.long]
MODEL = "deit_tiny_patch16_224"
DATA = Path(os.environ.get("ATTNAUDIT_DATA", "unset"))


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """The first 8 images in order of path under both protocols: what the tests below read."""
    folder = DATA / "imagenet_val"
    shards = image_shards(choose_images(find_images(folder)[:LEAST_INPUTS], folder, None, 0), shard_size())
    claims = claims_named((*KPCA, "kpca-eigenvalues", "study-similarity"), RecordKind.AUDIT)
    deciding = [measure for claim in claims for measure in claim.decided_by]
    runs = {}
    for protocol, more, references in (
        ("paper", SECTION_1, COLUMNS[1:]),
        ("exact", (), ("random_projection", "planted")),
    ):
        measures = tuple(dict.fromkeys((*deciding, "eigenvalue_max", *more)))
        settings = AuditSettings(Protocol(protocol), measures, references=references, repeats=2)
        plan = plan_audit([parse_model(MODEL)], shards, settings)
        runs[protocol] = conclude(measure(plan, tmp_path_factory.mktemp(protocol)), claims)
    return runs


KPCA = ("kpca-values", "kpca-eigenvectors", "kpca-projection")
COLUMNS = ("observed", "gaussian", "shuffled_tokens", "other_head", "planted")


#: Means over 25 images: observed, gaussian, shuffled tokens, other head, planted; None: the reference has no number.
SECTION_1 = {
    "direct_cosine_mean": (0.0002, 0.0, 0.0001, -0.0012, 0.0021),
    "matched_cosine_mean": (0.219, 0.246, 0.219, 0.218, 0.228),
    "direct_cosine_max": (0.316, 0.326, 0.324, 0.318, 0.383),
    "matched_cosine_max": (0.474, 0.471, 0.474, 0.477, 0.667),
    "linear_cka": (0.110, 0.139, 0.084, 0.114, 0.39),
    "kernel_cka": (0.307, 0.142, 0.084, 0.310, 1.0),
    "column_cosine_matched": (0.158, 0.166, 0.156, 0.158, None),
    "value_subspace_overlap": (0.433, 0.325, 0.325, 0.430, 1.0),
    "subspace_overlap": (0.166, 0.091, 0.096, 0.163, 1.0),
    "eigenvector_residual": (0.900, 0.921, 0.929, 0.904, 0.0),
}


@pytest.mark.parametrize("measure", SECTION_1)
def test_references_land_on_the_reference_table(audits, measure):
    found = audits["paper"].summary.models[MODEL]
    tolerance = 0.03 if measure == "kernel_cka" else 0.05 if measure.endswith("_max") else 0.02
    for reference, expected in zip(COLUMNS, SECTION_1[measure], strict=True):
        if expected is not None and (measure in found[reference] or reference in ("observed", "gaussian", "planted")):
            assert found[reference][measure].mean == pytest.approx(expected, abs=tolerance), reference
    if measure == "column_cosine_matched":
        assert found["planted"][measure].mean >= 0.957


def test_values_of_deit_tiny_are_as_near_to_kernel_pca_as_random_projections(audits):
    verdicts = {verdict.claim: verdict for verdict in audits["exact"].verdicts}
    for claim in KPCA:
        assert verdicts[claim].words == "refuted (at chance)"
        assert (verdicts[claim].satisfying, verdicts[claim].heads) == (0, 36)
    assert verdicts["kpca-eigenvalues"].words == "refuted (impossible)"
    assert "study-similarity" not in verdicts


def test_the_studys_numbers_of_deit_tiny_are_repeated_in_its_convention(audits):
    words = {verdict.claim: verdict.words for verdict in audits["paper"].verdicts}
    assert words["study-similarity"] == "supported"
