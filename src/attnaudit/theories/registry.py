"""The list of theories: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from attnaudit.errors import unknown
from attnaudit.theories.any_gauge import KernelPCAInAnyGauge
from attnaudit.theories.base import Theory
from attnaudit.theories.hopfield import Hopfield
from attnaudit.theories.input_pca import InputPCA
from attnaudit.theories.inputs_lowrank import InputsLowRank
from attnaudit.theories.kernel_pca import KernelPCA
from attnaudit.theories.kernel_regression import KernelRegression
from attnaudit.theories.kernel_svd import KernelSVD
from attnaudit.theories.keys_linear import KeysLinear
from attnaudit.theories.low_pass import LowPass
from attnaudit.theories.mean_shift import MeanShift
from attnaudit.theories.pca import PCA
from attnaudit.theories.primal_svd import PrimalSVD

#: The name of the theory that is fitted, by `measures.gauges`.
ANY_GAUGE = KernelPCAInAnyGauge.name
#: Of the values of softmax attention.
THEORIES: Mapping[str, Theory] = {
    theory.name: theory
    for theory in (
        KernelPCA(),
        KernelSVD(),
        PCA(),
        InputPCA(),
        KernelPCAInAnyGauge(),
        KeysLinear(),
        KernelRegression(),
        Hopfield(),
        MeanShift(),
        LowPass(),
        InputsLowRank(),
    )
}

#: The theories that are meant by `all`: fitting a gauge takes minutes, so that one must be named, or its claim.
ALL = tuple(name for name in THEORIES if name != ANY_GAUGE)

#: Of Primal-Attention layers, which have no values.
PRIMAL_SVD = PrimalSVD()


def theory_named(name: str) -> Theory:
    """The theory of that name."""
    if name not in THEORIES:
        raise unknown("theory", name, THEORIES)
    return THEORIES[name]
