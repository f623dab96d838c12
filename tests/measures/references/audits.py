"""Small simulated audits: made-up heads through the real pipeline, from rows to verdict."""

from dataclasses import replace

import pyarrow as pa
import torch

from attnaudit.audit.measuring import observed_rows
from attnaudit.audit.settings import AuditSettings
from attnaudit.capture import HeadId
from attnaudit.claims.registry import claims_named, judge
from attnaudit.measures.references import REFERENCES, planted
from attnaudit.records.evidence import Evidence
from attnaudit.theories.registry import KernelPCA
from tests.heads import make_heads
from tests.measures.references.case import situation_of

FAMILIES = ("columns", "eigenvectors", "identifiability")
ANOTHER_SEED = 987_654  # of the simulation, not of the audit's own references


def simulated_heads(seed, inputs=5, heads=2, tokens=24, dim=6, noise=None):
    """Values independent of the keys, or (with `noise`) planted with that much noise."""
    generator = torch.Generator().manual_seed(seed)
    count = inputs * heads
    query, key, value = (torch.randn(count, tokens, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    made = make_heads(0.8 * query, 0.8 * key, value)
    index = tuple(HeadId("model", f"input-{place // heads}", 0, place % heads) for place in range(count))
    made = replace(made, index=index)
    if noise is not None:
        values = planted(situation_of(made, seed=ANOTHER_SEED + seed), noise)
        made = replace(made, value=values)
    return made


def simulated_audit(heads, claims=("kpca-values", "kpca-eigenvectors"), families=FAMILIES):
    """Verdicts by claim name."""
    settings = AuditSettings(families=families, references=tuple(REFERENCES))
    evidence = Evidence.of_table(pa.concat_tables(observed_rows([heads], [KernelPCA()], settings)))
    verdicts, _ = judge(evidence, {"models": {"model": {}}}, claims_named(claims), "exact")
    return {verdict.claim: verdict for verdict in verdicts}
