"""Small simulated audits: made-up heads through the real pipeline, from rows to verdict."""

from dataclasses import replace

import pyarrow.compute as pc
import torch

from attnaudit.capture import HeadId, Heads
from attnaudit.claims import AuditedModel, RecordKind
from attnaudit.claims.jury import judge
from attnaudit.claims.registry import claims_named
from attnaudit.measures import select
from attnaudit.measures.measuring import measure_heads
from attnaudit.measures.references import planted
from attnaudit.protocol import Protocol
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.rows import rows_of
from attnaudit.statistics.decisions import LEAST_INPUTS
from tests.heads import make_heads
from tests.measures.references.case import reference_input

CLAIMS = ("kpca-values", "kpca-eigenvectors")
MEASURES = ("column_cosine_matched", "value_subspace_overlap", "procrustes")
REFERENCES = ("rotated", "planted")  # the inputs of these layers are not known
ANOTHER_SEED = 987_654  # of the simulation, not of the audit's own references


def simulated_heads(seed, inputs=LEAST_INPUTS, heads=2, tokens=24, dim=6, noise=None):
    """Values independent of the keys, or (with `noise`) planted with that much noise."""
    generator = torch.Generator().manual_seed(seed)
    count = inputs * heads
    query, key, value = (torch.randn(count, tokens, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    made = make_heads(0.8 * query, 0.8 * key, value)
    index = tuple(HeadId("model", f"input-{place // heads}", 0, place % heads) for place in range(count))
    made = replace(made, index=index)
    if noise is not None:
        values = planted.values(reference_input(made, seed=ANOTHER_SEED + seed), noise)
        made = replace(made, value=values)
    return made


def simulated_audit(heads, **more):
    """Verdicts by claim name."""
    return simulated_audits([heads], **more)[0]


def simulated_words(audits, claims=CLAIMS):
    """The words of many audits by claim name: measures that are only shown do not change them and are left out."""
    deciding = [replace(claim, shown=()) for claim in claims_named(claims, RecordKind.AUDIT)]
    return [{name: verdict.words for name, verdict in audit.items()} for audit in simulated_audits(audits, deciding)]


def simulated_audits(audits, claims=CLAIMS, measures=MEASURES):
    """The verdicts of many audits, each judged alone; all their heads are measured in one batch."""
    selection = select(measures=measures, references=REFERENCES, repeats=4)
    names = [f"model-{place}" for place in range(len(audits))]
    heads = Heads.cat([_renamed(heads, name) for heads, name in zip(audits, names, strict=True)])
    table = rows_of(measure_heads([heads], selection))
    judged = claims_named(claims, RecordKind.AUDIT)
    return [_verdicts(table.filter(pc.field("model") == name), name, judged) for name in names]


def _renamed(heads, model):
    return replace(heads, index=tuple(entry._replace(model=model) for entry in heads.index))


def _verdicts(table, model, claims):
    verdicts = judge(claims, [AuditedModel(model, HeadRows(Evidence.of_table(table)), {}, Protocol.EXACT)]).verdicts
    return {verdict.claim: verdict for verdict in verdicts}
