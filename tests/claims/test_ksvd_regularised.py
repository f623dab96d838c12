"""Primal-Attention and its regulariser: untrained weights are at chance, the weights of the SVD are not."""

import pyarrow as pa
import pytest
import torch

import attnaudit
from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.schema import OBSERVED, SCHEMA
from attnaudit.records.training import open_trainings
from attnaudit.records.verdict import VerdictWord
from attnaudit.theories import PRIMAL_SVD
from attnaudit.training.loop import train
from attnaudit.training.recipe_file import read_recipe
from tests.training.conftest import data_set, halves, recipe_file  # noqa: F401
from tests.training_runs import add_part, write_training

CLAIM = CLAIMS["ksvd-regularised"]


@pytest.fixture
def run(tmp_path, recipe_file, halves):  # noqa: F811
    changes = [
        "model.attention=primal", "model.attention_layers=[1]", "model.attention_options={rank: 2}",
        "ksvd_weight=0.05", "epochs=1", "monitor.scores=4",
    ]  # fmt: skip
    return train(read_recipe(str(recipe_file), changes), halves, tmp_path / "run").path


def test_a_training_of_a_few_steps_has_found_no_singular_vectors(run):
    (verdict,) = judge([CLAIM], open_trainings([run])).verdicts
    assert verdict.model == "tiny, seed 0, η = 0.05"
    assert verdict.word is not VerdictWord.SUPPORTED
    assert all(score.score.mean < 0.5 for score in verdict.scores)
    assert {score.measure for score in verdict.shown} == {"ksvd_dual_residual"}


def test_the_trained_model_is_judged_by_an_audit_too(run):
    images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    (verdict,) = attnaudit.audit(str(run), images, claims=[CLAIM.name]).verdicts
    assert verdict.model == str(run)
    assert verdict.word is not VerdictWord.SUPPORTED
    assert all(0 < score.informative <= 4 * 2 for score in verdict.scores)


def test_weights_of_the_svd_are_recognised(run):
    """At a later step the planted heads stand in the place of the observed ones."""
    (training,) = open_trainings([run])
    rows = training.rows.where(theory=PRIMAL_SVD.name)
    found = [row | {"step": 10**6} for row in rows.to_pylist()]
    planted = [row | {"reference": OBSERVED} for row in found if row["reference"] == "planted"]
    kept = [row for row in found if row["reference"] != OBSERVED or row["measure"] == "identifiable"]
    later = pa.Table.from_pylist(kept + planted, schema=SCHEMA)
    add_part(run, "later", later)
    (verdict,) = judge([CLAIM], open_trainings([run])).verdicts
    assert verdict.word is VerdictWord.SUPPORTED
    assert all(score.score.mean == pytest.approx(1) for score in verdict.scores)


def test_softmax_trainings_say_nothing_of_it(tmp_path):
    assert judge([CLAIM], open_trainings([write_training(tmp_path / "run")])).verdicts == ()
