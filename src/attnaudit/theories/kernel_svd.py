"""Kernel SVD: values as singular vectors of the attention matrix."""

from __future__ import annotations

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import LARGE
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.base import ENOUGH_TOKENS, leading_right_vectors, no_prediction


class KernelSVD:
    """Chen et al. (2023): the right singular vectors of the asymmetric kernel exp(scale·q·k), row-normalised.

    That matrix is the attention matrix itself, P = softmax(scale·QKᵀ) = U S Rᵀ, with the mask and position terms of the
    model; the prediction is the first d columns of R. Heads that share their keys have one P, with the queries of all
    of them. The paper derives it for values that are trained with its regulariser.
    """

    name = "ksvd"
    text = "right singular vectors of the query-key kernel (Chen et al. 2023)"
    guard = ENOUGH_TOKENS
    needs_spectrum = False
    #: Whether it predicts from the attention matrix alone, which is the same in every gauge.
    same_in_every_gauge = True

    def predict(self, heads: Heads, spectrum: Spectrum | None, protocol: Protocol) -> Prediction:
        """The d right singular vectors with the largest singular values."""
        if heads.tokens > LARGE:
            reason = f"kernel SVD needs the attention matrix, which is not built above {LARGE:,} tokens"
            return no_prediction(heads, reason)
        return leading_right_vectors(heads.attention(), heads)
