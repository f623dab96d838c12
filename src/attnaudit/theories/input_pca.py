"""Plain PCA of what a layer is given."""

from __future__ import annotations

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.base import ENOUGH_TOKENS, leading_right_vectors, no_prediction


class InputPCA:
    """The principal components of what the layer made its values from: V = XW says that they come from there."""

    name = "pca-inputs"
    text = "plain PCA of the layer's inputs"
    guard = ENOUGH_TOKENS
    needs_spectrum = False

    def predict(self, heads: Heads, spectrum: Spectrum | None, protocol: Protocol) -> Prediction:
        """Scores of the tokens on the d leading components of the inputs, each of unit length."""
        if heads.source is None:
            return no_prediction(heads, "the inputs of this layer are not known")
        inputs = heads.source.double()
        inputs = inputs - inputs.mean(dim=1, keepdim=True)
        return leading_right_vectors(inputs.mT.repeat_interleave(len(heads) // len(inputs), dim=0), heads)
