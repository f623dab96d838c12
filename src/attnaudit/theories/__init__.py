"""What the values of a head could be: each theory predicts them from the rest of the head."""

from attnaudit.theories.base import Identifiability, Theory
from attnaudit.theories.fitting import Fitted, FittedTheory, Fitting
from attnaudit.theories.input_pca import InputPCA
from attnaudit.theories.kernel_pca import KernelPCA
from attnaudit.theories.kernel_svd import KernelSVD
from attnaudit.theories.pca import PCA
from attnaudit.theories.primal_svd import PrimalSVD
from attnaudit.theories.registry import PRIMAL_SVD, THEORIES, theory_named

__all__ = [
    "PCA",
    "PRIMAL_SVD",
    "THEORIES",
    "Fitted",
    "FittedTheory",
    "Fitting",
    "Identifiability",
    "InputPCA",
    "KernelPCA",
    "KernelSVD",
    "PrimalSVD",
    "Theory",
    "theory_named",
]
