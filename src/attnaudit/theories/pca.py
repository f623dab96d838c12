"""Plain PCA of the keys."""

from __future__ import annotations

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.base import ENOUGH_TOKENS, leading_right_vectors


class PCA:
    """No kernel at all: the principal components of the centred keys (their left singular vectors)."""

    name = "pca"
    text = "plain PCA of the keys"
    guard = ENOUGH_TOKENS
    needs_spectrum = False

    def predict(self, heads: Heads, spectrum: Spectrum | None, protocol: Protocol) -> Prediction:
        """Scores of the tokens on the d components, each of unit length."""
        keys = heads.key.double()
        return leading_right_vectors((keys - keys.mean(dim=1, keepdim=True)).mT, heads)
