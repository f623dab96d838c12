"""Gram matrices in the log domain, their spectra, and the values that kernel PCA predicts from them."""

from attnaudit.kernel.eigen import spectrum
from attnaudit.kernel.feature import TokenNorms, token_norms
from attnaudit.kernel.gram import Gram, centred, normalised_gram, standardised
from attnaudit.kernel.prediction import Prediction, kernel_pca_values
from attnaudit.kernel.spectra import Spectrum

__all__ = [
    "Gram",
    "Prediction",
    "Spectrum",
    "TokenNorms",
    "centred",
    "kernel_pca_values",
    "normalised_gram",
    "spectrum",
    "standardised",
    "token_norms",
]
