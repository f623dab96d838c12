"""Kernel PCA of the keys in the gauge that suits it best."""

from __future__ import annotations

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.base import ENOUGH_TOKENS, forces_zero_values, no_prediction


class KernelPCAInAnyGauge:
    """Teo & Nguyen (2024) modulo what a network does not determine: V̇ of some kernel exp((k + c)ᵀS(k' + c)), S ≻ 0.

    S and c are the same for all inputs and fitted to half of them, by `measures.gauges`: heads of a single input have
    no prediction. In the limit S → 0 it is PCA of the keys.
    """

    name = "kpca-any-gauge"
    text = "kernel PCA of the keys in the gauge that suits it best (Teo & Nguyen 2024, modulo gauge)"
    guard = ENOUGH_TOKENS
    needs_spectrum = False
    #: Those that decide.
    measures = ("value_subspace_overlap",)
    #: Whether it has parameters that are fitted to other inputs.
    fitted = True
    impossible = staticmethod(forces_zero_values)

    def predict(self, heads: Heads, spectrum: Spectrum | None, protocol: Protocol) -> Prediction:
        """Nothing: it takes more than one input."""
        return no_prediction(heads, "its gauge is fitted to other inputs")
