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
from attnaudit.records.verdict import Finding
from attnaudit.statistics.decisions import LEAST_INPUTS
from attnaudit.theories.base import Identifiability

REFERENCES = ("random_projection", "planted")
#: The fewest that decide anything.
INPUTS = LEAST_INPUTS


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


def batch(inputs=INPUTS):
    return torch.randn(inputs, 40, 16, generator=torch.Generator().manual_seed(1))


def judged(model, *claims, inputs=INPUTS, **more):
    return attnaudit.audit(model, batch(inputs), **{"claims": claims, "references": REFERENCES} | more)


@pytest.mark.parametrize(("tied", "words"), [(True, "supported in all heads"), (False, "refuted (at chance)")])
def test_a_claim_of_ones_own_is_supported_exactly_where_it_is_true(tied, words):
    run = judged(Encoder(tied=tied), KEYS, "kpca-values", theories=[ValuesAreKeys()])
    assert [(v.claim, v.words) for v in run.verdicts if v.claim == KEYS.name] == [(KEYS.name, words)]


def test_fewer_than_eight_independent_inputs_decide_nothing():
    """Whether they are few, or several belong together."""
    for more in ({"inputs": INPUTS - 1}, {"groups": ["film", "film", *"abcdef"]}):
        (verdict,) = judged(Encoder(tied=True), KEYS, theories=[ValuesAreKeys()], **more).verdicts
        assert verdict.words == "undecided (too few inputs)"
        assert verdict.reason.startswith(
            f"{INPUTS - 1} independent inputs, and {INPUTS} are needed. Scores: column_cosine_matched 1.00"
        )
        assert verdict.satisfying == 0


class SomeTied(nn.Module):
    """Ten heads of attention, the first of which have values that equal their keys."""

    def __init__(self, true, heads=10, dim=4):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(heads * dim, heads, batch_first=True)
        width, tied = heads * dim, true * dim
        with torch.no_grad():
            weight = self.attention.in_proj_weight
            weight[2 * width : 2 * width + tied] = weight[width : width + tied]

    def forward(self, x):
        return self.attention(x, x, x)[0]


@pytest.mark.parametrize("true", [1, 3, 9])
def test_the_heads_for_which_a_claim_is_true_are_counted_and_the_best_is_named(true):
    inputs = torch.randn(INPUTS, 30, 40, generator=torch.Generator().manual_seed(1))
    (verdict,) = attnaudit.audit(
        SomeTied(true), inputs, claims=[KEYS], theories=[ValuesAreKeys()], references=REFERENCES,
        measures=KEYS.decided_by,
    ).verdicts  # fmt: skip
    assert (verdict.word, verdict.finding) == (VerdictWord.SUPPORTED, Finding.IN_SOME_HEADS)
    assert verdict.words == f"supported in {true} of 10 heads"
    assert [own.head for own in verdict.scores[0].heads if own.satisfies] == list(range(true))
    assert f"{true} of 10 heads satisfy it" in verdict.reason
    assert "the best is layer 0, head " in verdict.reason


def test_the_page_of_a_run_knows_the_words_and_the_theory_of_a_claim_it_has_never_heard_of(tmp_path):
    run = judged(Encoder(tied=True), KEYS, theories=[ValuesAreKeys()], out=tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "summary.json").read_text())["claims"]
    words = {"statement": KEYS.statement, "citation": "nobody", "theory": "keys", "limits": "", "heads_have": ""}
    assert kept == {KEYS.name: words}
    assert KEYS.statement in run.report().read_text().replace("&#39;", "'")


def test_a_claim_may_decide_by_a_rule_of_its_own():
    def never(audits, terms):
        return [
            Verdict("never", a.model, VerdictWord.REFUTED, Finding.LOSS, f"{a.observed['linear_cka'].n} heads")
            for a in audits
        ]

    run = judged(Encoder(tied=False), Claim("never", "s", "c", "f", "r", ("linear_cka",), decide=never))
    assert [(v.word, v.reason) for v in run.verdicts] == [(VerdictWord.REFUTED, f"{2 * INPUTS} heads")]
    assert "refuted (a loss)" in run.report().read_text()


def cosine_of_products(at):
    """Whatever the order and signs of columns."""
    ours, theirs = ((x.double() @ x.double().mT).flatten(1) for x in (at.heads.value, at.heads.key))
    return torch.nn.functional.cosine_similarity(ours, theirs)


SIMILARITY = Measure("similarity", "cosine of VVᵀ and KKᵀ", cosine_of_products, closer="higher", ideal=1.0)


@pytest.mark.parametrize(("tied", "word"), [(True, VerdictWord.SUPPORTED), (False, VerdictWord.REFUTED)])
def test_a_measure_of_ones_own_decides_a_claim_of_ones_own(tied, word):
    claim = named("mine", decided_by=("similarity",), shown=("similarity",), theory="keys")
    run = judged(Encoder(tied=tied), claim, theories=[ValuesAreKeys()], measures=[SIMILARITY])
    assert [(v.word, v.scores[0].measure, v.shown[0].measure) for v in run.verdicts] == [(word, *["similarity"] * 2)]


def test_a_null_of_ones_own_counts_as_chance():
    """Values that equal the observed ones leave nothing above chance."""
    same = Reference("same", "the observed values", Role.NULL, lambda given: given.heads.value, random=False)
    run = judged(Encoder(tied=False), KEYS, theories=[ValuesAreKeys()], references=["planted", same])
    (score,) = run.verdicts[0].scores
    assert score.null == "same"
    assert score.score.mean == 0
    assert run.verdicts[0].finding is Finding.AT_CHANCE


def test_a_head_that_the_guard_of_a_theory_refuses_is_named_with_what_it_needs():
    class Choosy(ValuesAreKeys):
        guard = Identifiability("a name of its own", lambda heads, spectrum: ("it has none",) * len(heads))

    run = judged(Encoder(tied=True), KEYS, theories=[Choosy()])
    assert [(v.words, v.reason) for v in run.verdicts] == [
        ("undecided (not identifiable)", "no head has a name of its own")
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

    def audited(**more):
        more = {"claims": (), "references": (), "theories": ["pca"]} | more
        return judged(Encoder(tied=False), inputs=2, **more)

    first, again, changed = audited(**before), audited(**before), audited(**after)
    assert again.path == first.path
    assert changed.path != first.path
    with pytest.raises(RunFolderError, match="other own"):
        audited(**after, out=first.path)
