"""A fitted theory of a user's own, from its class to its place in the ranking."""

import pytest
import torch

import attnaudit
from attnaudit.claims import Claim
from attnaudit.kernel import Prediction
from attnaudit.theories import FittedTheory


class OneScale:
    """V = c·K with one number c for each head."""

    def __init__(self):
        self.products, self.squares = 0.0, 0.0

    def add(self, heads):
        self.products = self.products + (heads.value * heads.key).double().sum(dim=(1, 2))
        self.squares = self.squares + heads.key.double().square().sum(dim=(1, 2))

    def finish(self):
        return self

    def predict(self, heads):
        scale = self.products / self.squares
        nothing = torch.zeros(len(heads), dtype=torch.float64)
        return Prediction(heads.key.double() * scale[:, None, None], nothing, (None,) * len(heads))


class ScaledKeys(FittedTheory):
    name = "scaled-keys"
    text = "values are the keys times a number"

    def fitting(self):
        return OneScale()


class Attention(torch.nn.Module):
    def __init__(self, tied):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key, self.value = (torch.nn.Linear(16, 16) for _ in range(3))
        self.tied = tied

    def forward(self, x):
        q, k, v = (own(x).unflatten(-1, (2, 8)).transpose(1, 2) for own in (self.query, self.key, self.value))
        return torch.nn.functional.scaled_dot_product_attention(q, k, 3 * k if self.tied else v)


def ranking(tied, **more):
    inputs = torch.randn(8, 40, 16, generator=torch.Generator().manual_seed(0))
    return attnaudit.audit(Attention(tied), inputs, theories=[ScaledKeys(), "keys-linear"], claims=[], **more)


def test_a_fitted_theory_of_ones_own_is_ranked_where_it_is_true(tmp_path):
    run = ranking(True, out=tmp_path / "run")
    places = {entry.theory: entry.place for entry in run.ranking}
    assert set(places) == {"scaled-keys", "keys-linear", "kpca"}
    assert {places["scaled-keys"], places["keys-linear"]} == {1, 2}
    own = next(entry for entry in run.ranking if entry.theory == "scaled-keys")
    assert own.word.value == "supported"
    assert own.mean == pytest.approx(1)
    assert {best.theory for best in run.best_theories} <= {"scaled-keys", "keys-linear"}
    assert attnaudit.open(tmp_path / "run").ranking == run.ranking


def test_a_fitted_theory_of_ones_own_has_no_place_where_it_is_at_chance(tmp_path):
    run = ranking(False, out=tmp_path / "run")
    own = next(entry for entry in run.ranking if entry.theory == "scaled-keys")
    assert (own.place, own.word.value, own.above_chance) == (None, "refuted", 0)


def test_a_claim_about_it_is_decided_by_its_own_measure(tmp_path):
    claim = Claim(
        "scaled", "Values are scaled keys.", "this test", "V = cK", "R²", ("explained_variance",), theory="scaled-keys"
    )
    inputs = torch.randn(8, 40, 16, generator=torch.Generator().manual_seed(0))
    run = attnaudit.audit(Attention(True), inputs, theories=[ScaledKeys()], claims=[claim], out=tmp_path / "run")
    assert run.verdicts[0].words == "supported in all heads"
