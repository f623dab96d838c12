"""A claim and a theory from user code, judged like those of the package."""

import json

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.claims import Claim, Verdict, Word
from attnaudit.errors import UsageError
from attnaudit.kernel import Prediction

REFERENCES = ("gaussian", "shuffled_tokens", "other_head", "planted")


class ValuesAreKeys:
    name = "keys"
    text = "values equal keys"

    def predict(self, heads, spectrum, protocol):
        return Prediction(heads.key.double(), torch.zeros(len(heads), dtype=torch.float64), (None,) * len(heads))


KEYS = Claim(
    name="values-are-keys",
    statement="A head's values equal its keys.",
    citation="nobody",
    formula="V = K",
    rule="Columns matched by |cosine|.",
    decided_by=("column_cosine_matched",),
    theory="keys",
)


class Encoder(nn.Module):
    """One layer of attention; with `tied`, values are made by the map that makes keys."""

    def __init__(self, *, tied):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        if tied:
            with torch.no_grad():
                self.attention.in_proj_weight[32:] = self.attention.in_proj_weight[16:32]

    def forward(self, x):
        return self.attention(x, x, x)[0]


def judged(model, *claims, **more):
    batch = torch.randn(4, 40, 16, generator=torch.Generator().manual_seed(1))
    return attnaudit.audit(model, batch, claims=claims, references=REFERENCES, **more)


@pytest.mark.parametrize(("tied", "word"), [(True, Word.SUPPORTED), (False, Word.INDISTINGUISHABLE)])
def test_a_claim_of_ones_own_is_supported_exactly_where_it_is_true(tied, word):
    run = judged(Encoder(tied=tied), KEYS, "kpca-values", theories=[ValuesAreKeys()])
    assert [(v.claim, v.word) for v in run.verdicts if v.claim == KEYS.name] == [(KEYS.name, word)]


def test_the_page_of_a_run_knows_the_words_and_the_theory_of_a_claim_it_has_never_heard_of(tmp_path):
    run = judged(Encoder(tied=True), KEYS, theories=[ValuesAreKeys()], out=tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "summary.json").read_text())["claims"]
    assert kept == {KEYS.name: {"statement": KEYS.statement, "theory": "keys"}}
    assert KEYS.statement in run.report().read_text().replace("&#39;", "'")


def test_a_claim_may_decide_by_a_rule_of_its_own():
    def never(audits, terms):
        return [Verdict("never", a.model, Word.REFUTED, f"{a.observed['linear_cka']['n']} heads") for a in audits]

    run = judged(Encoder(tied=False), Claim("never", "s", "c", "f", "r", ("linear_cka",), decide=never))
    assert [(v.word, v.reason) for v in run.verdicts] == [(Word.REFUTED, "8 heads")]


def named(name, **more):
    return Claim(name, "s", "c", "f", "r", **({"decided_by": ("procrustes",)} | more))


@pytest.mark.parametrize(
    ("claims", "theories", "message"),
    [
        ([named("mine", decided_by=("vibes",))], [], "measure 'vibes'"),
        ([named("mine", shown=("vibes",))], [], "measure 'vibes'"),
        ([named("mine", theory="astrology")], [], "theory 'astrology'"),
        ([named("mine"), named("mine")], [], "2 claims are called 'mine'"),
        ([named("kpca-values"), "kpca-values"], [], "2 claims are called 'kpca-values'"),
        (["kpca-values"], [type("Twin", (ValuesAreKeys,), {"name": "kpca"})()], "a theory called 'kpca'"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_anything_is_computed(tmp_path, claims, theories, message):
    with pytest.raises(UsageError, match=message):
        judged(Encoder(tied=False), *claims, theories=theories, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
