"""From Primal-Attention layers to rows: heads as they are and with the weights of every reference, one kernel each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import torch

from attnaudit.audit.settings import AuditSettings
from attnaudit.kernel.primal import PrimalHeads, PrimalKernel, primal_kernel
from attnaudit.measures.ksvd import ksvd_measures, why_missing
from attnaudit.measures.ksvd_references import PRIMAL_REFERENCES
from attnaudit.records.schema import OBSERVED, rows

#: What these heads are held to: that E and R are singular vectors of the layer's own kernel.
KSVD_PRIMAL = "ksvd-primal"


def primal_rows(heads: PrimalHeads, settings: AuditSettings) -> Iterator[pa.Table]:
    """The rows of a layer; `dim` is the number of columns of E and R. References that are for values do not apply."""
    kernel = primal_kernel(heads)
    yield _rows(heads, kernel, settings, OBSERVED)
    for name in settings.references:
        if name in PRIMAL_REFERENCES:
            for repeat in range(settings.repeats):
                changed = PRIMAL_REFERENCES[name](heads, kernel, settings.seed, repeat)
                if changed is not None:
                    yield _rows(changed, kernel, settings, name, repeat)


def _rows(
    heads: PrimalHeads, kernel: PrimalKernel, settings: AuditSettings, reference: str, repeat: int = 0
) -> pa.Table:
    values = ksvd_measures(heads, kernel)
    if reference == OBSERVED:
        values["kernel_rank"] = kernel.rank.to(torch.float64)
    problems = why_missing(heads, kernel)
    return rows(heads, values, problems, settings.protocol, theory=KSVD_PRIMAL, reference=reference, repeat=repeat)
