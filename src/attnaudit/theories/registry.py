"""Theories of what a head's values are: each predicts them from the rest of the head.

A theory of your own is a class with a `name`, a `text` and a `predict`; pass an instance to `attnaudit.audit` in
`theories` and it is measured, held against references and ranked like the others.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

import torch

from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.kernel import paper
from attnaudit.kernel.prediction import Prediction, kernel_pca_values
from attnaudit.kernel.solvers import LARGE
from attnaudit.kernel.spectra import Spectrum
from attnaudit.numerics.threads import torch_threads
from attnaudit.protocol import Protocol


@typing.runtime_checkable
class Theory(typing.Protocol):
    """What a theory offers."""

    name: str
    text: str

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """The values it predicts; `spectrum` is that of the keys, solved once for all theories."""


class KernelPCA:
    """Teo & Nguyen (2024): V̇ = G(I - 1_N)A, the kernel-PCA coefficients of the keys over their kernel masses."""

    name = "kpca"
    text = "kernel PCA of the keys (Teo & Nguyen 2024)"

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """In the normalisation of the protocol."""
        return paper.kernel_pca_values(spectrum) if protocol is Protocol.PAPER else kernel_pca_values(spectrum)


class KernelSVD:
    """Chen et al. (2023): the right singular vectors of the asymmetric kernel exp(scale·q·k), row-normalised.

    That matrix is the attention matrix itself, P = softmax(scale·QKᵀ) = U S Rᵀ; the prediction is the first d columns
    of R. The paper derives it for values that are trained with its regulariser.
    """

    name = "ksvd"
    text = "right singular vectors of the query-key kernel (Chen et al. 2023)"

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """The d right singular vectors with the largest singular values."""
        if heads.tokens > LARGE:
            return _nothing(heads, f"kernel SVD needs the attention matrix, which is not built above {LARGE:,} tokens")
        return _columns(heads.attention(), heads)


class PCA:
    """No kernel at all: the principal components of the centred keys (their left singular vectors)."""

    name = "pca"
    text = "plain PCA of the keys"

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """Scores of the tokens on the d components, each of unit length."""
        keys = heads.key.double()
        return _columns((keys - keys.mean(dim=1, keepdim=True)).mT, heads)


class InputPCA:
    """The principal components of what the layer made its values from: V = XW says that they come from there."""

    name = "pca-inputs"
    text = "plain PCA of the layer's inputs"

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """Scores of the tokens on the d leading components of the inputs, each of unit length."""
        if heads.source is None:
            return _nothing(heads, "the inputs of this layer are not known")
        inputs = heads.source.double()
        inputs = inputs - inputs.mean(dim=1, keepdim=True)
        return _columns(inputs.mT.repeat_interleave(len(heads) // len(inputs), dim=0), heads)


def _nothing(heads: Heads, reason: str) -> Prediction:
    nothing = torch.full(heads.value.shape, torch.nan, dtype=torch.float64, device=heads.value.device)
    return Prediction(nothing, torch.zeros_like(nothing[:, 0, 0]), (reason,) * len(heads))


def _columns(matrix: torch.Tensor, heads: Heads) -> Prediction:
    """The leading right singular vectors of each matrix, over tokens; missing where there are too few."""
    width = min(heads.value.shape[-1], heads.tokens)
    finite = matrix.isfinite().all(dim=-1).all(dim=-1)
    with torch_threads(1):
        _, sizes, right = torch.linalg.svd(matrix.masked_fill(~finite[:, None, None], 0.0), full_matrices=False)
    rounding = sizes[:, :1] * max(matrix.shape[1:]) * torch.finfo(matrix.dtype).eps
    found = (sizes > rounding).sum(dim=-1)
    lost = (found < width) | ~finite
    values = right[:, :width].mT.masked_fill(lost[:, None, None], torch.nan)
    problems = tuple(
        f"only {rank} of {width} components stand above rounding" if missing else None
        for rank, missing in zip(found.tolist(), lost.tolist(), strict=True)
    )
    return Prediction(values, torch.zeros_like(sizes[:, 0]), problems)


THEORIES: Mapping[str, Theory] = {theory.name: theory for theory in (KernelPCA(), KernelSVD(), PCA(), InputPCA())}


def theory_named(name: str) -> Theory:
    """The theory of that name."""
    if name not in THEORIES:
        raise UsageError(f"There is no theory {name!r}; there are {', '.join(THEORIES)}.")
    return THEORIES[name]
