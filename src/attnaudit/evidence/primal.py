"""From Primal-Attention layers to rows: heads as they are and with the weights of every control, one kernel each."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import torch

from attnaudit.evidence.schema import OBSERVED, rows
from attnaudit.evidence.settings import Settings
from attnaudit.kernel.primal import PrimalHeads, PrimalKernel, primal_kernel
from attnaudit.measures.ksvd import ksvd_measures, why_missing
from attnaudit.measures.ksvd_controls import PRIMAL_CONTROLS

#: What these heads are held to: that E and R are singular vectors of the layer's own kernel.
KSVD_PRIMAL = "ksvd-primal"


def primal_rows(heads: PrimalHeads, settings: Settings) -> Iterator[pa.Table]:
    """The rows of a layer; `dim` is the number of columns of E and R. Controls that are for values do not apply."""
    kernel = primal_kernel(heads)
    yield _rows(heads, kernel, settings, OBSERVED)
    for name in settings.controls:
        if name in PRIMAL_CONTROLS:
            for repeat in range(settings.repeats):
                changed = PRIMAL_CONTROLS[name](heads, kernel, settings.seed, repeat)
                if changed is not None:
                    yield _rows(changed, kernel, settings, name, repeat)


def _rows(heads: PrimalHeads, kernel: PrimalKernel, settings: Settings, control: str, repeat: int = 0) -> pa.Table:
    values = ksvd_measures(heads, kernel)
    if control == OBSERVED:
        values["kernel_rank"] = kernel.rank.to(torch.float64)
    problems = why_missing(heads, kernel)
    return rows(heads, values, problems, settings.protocol, interpretation=KSVD_PRIMAL, control=control, repeat=repeat)
