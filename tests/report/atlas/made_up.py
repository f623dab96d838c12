"""Audits of models that do not exist, with every kind of verdict, for the pages and tables of an atlas."""

import random
from dataclasses import replace

from attnaudit.claims.registry import CLAIMS
from attnaudit.records.audit_file import AuditConventions, AuditFile, AuditIdentity
from attnaudit.records.audit_summary import AuditSummary, CaptureSummary
from attnaudit.records.verdict import (
    BestTheory,
    Finding,
    HeadScore,
    LayerScore,
    MeanEstimate,
    Rank,
    Score,
    Verdict,
    VerdictWord,
)
from attnaudit.report.atlas import AtlasAudit, AtlasFailure
from attnaudit.sources.catalogue import FIELDS, CatalogueEntry

THEORIES = ("kpca", "ksvd", "pca", "pca-inputs", "keys-linear", "kernel-regression", "hopfield", "inputs-lowrank")
JUDGED = ("kpca-values", "kpca-eigenvectors", "ksvd-values", "keys-linear", "hopfield")
SUPPORTED, REFUTED, UNDECIDED = VerdictWord
FINDINGS = (
    (REFUTED, Finding.AT_CHANCE),
    (REFUTED, Finding.PARTIAL),
    (SUPPORTED, Finding.IN_SOME_HEADS),
    (SUPPORTED, Finding.ON_AVERAGE),
    (UNDECIDED, Finding.TOO_WIDE),
    (REFUTED, Finding.IMPOSSIBLE),
)


def entry(name, field):
    """Of the catalogue."""
    return CatalogueEntry(name, field, "BERT, 2 layers, 3 heads, width 12", "MIT", 12, "text", is_here=True)


def score(draw, measure, mean, layers, heads, inputs=12):
    """One measure over all heads and layers."""

    def estimate(centre):
        width = 0.02 + 0.05 * draw.random()
        return MeanEstimate(centre, (centre - width, centre + width))

    own = [(layer, head, mean + 0.1 * draw.random()) for layer in range(layers) for head in range(heads)]
    return Score(
        measure,
        score=estimate(mean),
        tolerance=0.2,
        inputs=inputs,
        heads=tuple(HeadScore(*place, estimate(at), at > 0.8, at > 0.1) for *place, at in own),
        layers=tuple(LayerScore(layer, estimate(mean)) for layer in range(layers)),
        informative=len(own),
        null="random_projection",
    )


def verdict(draw, claim, name, layers, heads):
    """One of every kind, by chance."""
    word, finding = draw.choice(FINDINGS)
    mean = {SUPPORTED: 0.85, REFUTED: 0.05, UNDECIDED: 0.75}[word] + 0.1 * draw.random()
    scores = () if finding is Finding.IMPOSSIBLE else (score(draw, "procrustes", mean, layers, heads),)
    return Verdict(claim, name, word, finding, "Because of <b>chance</b>.", scores, (), layers, layers * heads)


def ranks(draw, name, layers, heads):
    """Theories, every third at chance."""
    found = []
    for place, theory in enumerate(THEORIES):
        mean = 1.0 if theory == "inputs-lowrank" else 0.7 * draw.random()
        own = score(draw, "explained_variance", mean, layers, heads)
        chance = place % 3 == 2
        finding = Finding.AT_CHANCE if chance else Finding.PARTIAL
        number = None if chance or theory == "inputs-lowrank" else place + 1
        found.append(Rank(name, theory, mean, (own,), REFUTED, finding, number, layers, layers * heads))
    return tuple(found)


def audit(name="model", field="text", seed=0, layers=2, heads=3):
    """The audit of one model."""
    draw = random.Random(seed)
    identity = AuditIdentity(AuditConventions(), ((name, "f" * 32),), (("input", "0" * 32),), ())
    settings = AuditFile(
        format=4, identity=identity, attnaudit="0", versions={"torch": "2"}, weights={name: "/home/ada/models/own"},
        loading={name: ("4-bit weights",)}, parts=(), certificates=dict.fromkeys(map(str, range(layers)), 1e-7),
        eigen_solvers={}, attention={},
    )  # fmt: skip
    best = [
        BestTheory(name, 1, head, theory, MeanEstimate(0.3 + 0.1 * head, (0.2, 0.3 + 0.1 * head)))
        for head, theory in enumerate(("keys-linear", None))
    ]
    summary = AuditSummary(
        models={name: {}},
        other_theories={},
        capture=CaptureSummary(1e-7, ()),
        skipped_inputs=(),
        claims={claim: CLAIMS[claim].words for claim in (*JUDGED, "kpca-eigenvalues")},
        verdicts=(
            *(verdict(draw, claim, name, layers, heads) for claim in JUDGED),
            Verdict(
                "kpca-eigenvalues",
                name,
                REFUTED,
                Finding.IMPOSSIBLE,
                f"eigenvalues are below 1; here they are {draw.random()}",
            ),
        ),
        ranking=ranks(draw, name, layers, heads),
        best_theories=tuple(best),
        levels=dict.fromkeys(JUDGED, 0.95),
    )
    return AtlasAudit(entry(name, field), name, settings, summary, 12.0)


def undecided(own, theory):
    """The same audit, in which no measure decides a theory, although it has scores."""
    ranking = tuple(
        replace(rank, word=UNDECIDED, finding=Finding.NOT_IDENTIFIABLE, place=None, above_chance=0, heads=0)
        if rank.theory == theory
        else rank
        for rank in own.summary.ranking
    )
    return replace(own, summary=replace(own.summary, ranking=ranking))


def audits(number=30):
    """Models of all fields."""
    return [
        audit(f"model-{place}", FIELDS[place * len(FIELDS) // number], place, 2 + place % 5, 3 + place % 4)
        for place in range(number)
    ]


def failure(name="broken", reason="It tells no story."):
    """A model that could not be audited."""
    return AtlasFailure(entry(name, "music"), reason)
