"""Everything the measures of one batch of heads share, computed once and only if asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from attnaudit import kernel
from attnaudit.capture.heads import Heads
from attnaudit.kernel import paper
from attnaudit.kernel.eigen import Spectrum
from attnaudit.kernel.feature import TokenNorms, token_norms
from attnaudit.kernel.gram import standardised
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.guards import Guards, guards_of
from attnaudit.protocol import Protocol


@dataclass(frozen=True)
class Evaluation:
    """A batch of heads under a protocol, with its spectrum, prediction and norms."""

    heads: Heads
    protocol: Protocol = Protocol.EXACT
    seed: int = 0

    @property
    def guards(self) -> Guards:
        """What the protocol adds to denominators."""
        return guards_of(self.protocol)

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the keys as they are."""
        if self.protocol is Protocol.PAPER:
            return paper.spectrum(self.heads.key, by_magnitude=True)
        return kernel.spectrum(self.heads.key, scale=self.heads.scale)

    @cached_property
    def standardised_spectrum(self) -> Spectrum:
        """Of the keys standardised token by token."""
        if self.protocol is Protocol.PAPER:
            return paper.spectrum(standardised(self.heads.key.float()))
        return kernel.spectrum(standardised(self.heads.key.double()))

    @cached_property
    def prediction(self) -> Prediction:
        """The kernel-PCA values."""
        if self.protocol is Protocol.PAPER:
            return paper.kernel_pca_values(self.spectrum)
        return kernel.kernel_pca_values(self.spectrum)

    @property
    def problems(self) -> tuple[str | None, ...]:
        """Why a head cannot be measured, where a reason is known; asks for no work that no measure has done."""
        if self.protocol is Protocol.PAPER and "spectrum" in self.__dict__:
            return paper.problems(self.spectrum)
        if "prediction" in self.__dict__:
            return self.prediction.problems
        return (None,) * len(self.heads)

    @cached_property
    def norms(self) -> TokenNorms:
        """Per-token lengths of φ(q) and of the output."""
        scale = None if self.protocol is Protocol.PAPER else self.heads.scale.to(torch.float64)
        return token_norms(self.heads, scale=scale)
