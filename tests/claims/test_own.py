"""A claim and a theory from user code, judged like those of the package."""

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

import attnaudit
from attnaudit.claims import Claim, Verdict, VerdictWord
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.kernel import Prediction
from attnaudit.measures import Measure, Reference
from attnaudit.measures.references import Role
from attnaudit.theories.base import Identifiability

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


@pytest.mark.parametrize(("tied", "word"), [(True, VerdictWord.SUPPORTED), (False, VerdictWord.INDISTINGUISHABLE)])
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
        return [Verdict("never", a.model, VerdictWord.REFUTED, f"{a.observed['linear_cka'].n} heads") for a in audits]

    run = judged(Encoder(tied=False), Claim("never", "s", "c", "f", "r", ("linear_cka",), decide=never))
    assert [(v.word, v.reason) for v in run.verdicts] == [(VerdictWord.REFUTED, "8 heads")]


def cosine_of_products(at):
    """Whatever the order and signs of columns."""
    ours, theirs = ((x.double() @ x.double().mT).flatten(1) for x in (at.heads.value, at.heads.key))
    return torch.nn.functional.cosine_similarity(ours, theirs)


SIMILARITY = Measure("similarity", "cosine of VVᵀ and KKᵀ", cosine_of_products, closer="higher", ideal=1.0)


@pytest.mark.parametrize(("tied", "word"), [(True, VerdictWord.SUPPORTED), (False, VerdictWord.INDISTINGUISHABLE)])
def test_a_measure_of_ones_own_decides_a_claim_of_ones_own(tied, word):
    claim = named("mine", decided_by=("similarity",), shown=("similarity",), theory="keys")
    run = judged(Encoder(tied=tied), claim, theories=[ValuesAreKeys()], measures=[SIMILARITY])
    assert [(v.word, v.scores[0].measure, v.shown[0].measure) for v in run.verdicts] == [(word, *["similarity"] * 2)]


def test_a_null_of_ones_own_counts_as_chance():
    """Values that equal the observed ones leave nothing above chance."""
    same = Reference("same", "the observed values", Role.NULL, lambda given: given.heads.value, random=False)
    batch = torch.randn(4, 40, 16, generator=torch.Generator().manual_seed(1))
    run = attnaudit.audit(
        Encoder(tied=False), batch, claims=[KEYS], theories=[ValuesAreKeys()], references=["planted", same]
    )
    (score,) = run.verdicts[0].scores
    assert score.null_name == "same"
    assert score.mean == 0


def test_a_head_that_the_guard_of_a_theory_refuses_is_named_with_what_it_needs():
    class Choosy(ValuesAreKeys):
        guard = Identifiability("a name of its own", lambda heads, spectrum: ("it has none",) * len(heads))

    run = judged(Encoder(tied=True), KEYS, theories=[Choosy()])
    assert [(v.word, v.reason) for v in run.verdicts] == [
        (VerdictWord.NOT_IDENTIFIABLE, "none of 8 heads has a name of its own")
    ]


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


class InOrder:
    """A theory whose prediction depends on an attribute."""

    name, text = "in-order", "the keys, in order or not"

    def __init__(self, *, order):
        self.order = order

    def predict(self, heads, spectrum, protocol):
        values = heads.key.double() if self.order else heads.key.double().flip(1)
        return Prediction(values, torch.zeros(len(heads), dtype=torch.float64), (None,) * len(heads))


def doubled(at):
    return cosine_of_products(at) * 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"theories": [InOrder(order=True)]}, {"theories": [InOrder(order=False)]}),
        ({"measures": [SIMILARITY]}, {"measures": [replace(SIMILARITY, function=doubled)]}),
    ],
    ids=["an attribute of a theory", "the function of a measure"],
)
def test_what_is_ones_own_is_known_by_its_code_and_not_by_its_name(before, after, tmp_path):
    """Rows of an object that has changed since must not be resumed."""
    batch = torch.randn(4, 40, 16, generator=torch.Generator().manual_seed(1))

    def audited(**more):
        return attnaudit.audit(Encoder(tied=False), batch, claims=(), references=(), **({"theories": ["pca"]} | more))

    first, again, changed = audited(**before), audited(**before), audited(**after)
    assert again.path == first.path
    assert changed.path != first.path
    with pytest.raises(RunFolderError, match="other own"):
        audited(**after, out=first.path)
