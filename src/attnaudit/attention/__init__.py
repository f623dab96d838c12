"""Attention variants as drop-in modules, and a function that swaps one into a model.

>>> from attnaudit import attention
>>> change = attention.swap(model, "rpc", layers=[0], iterations=4)  # doctest: +SKIP
>>> print(change); change.undo()                                    # doctest: +SKIP
"""

from attnaudit.attention import functional
from attnaudit.attention.base import Attention
from attnaudit.attention.diagnosis import Diagnosis, diagnosing
from attnaudit.attention.pca_penalty import PCAPenalty
from attnaudit.attention.primal import PrimalAttention, ksvd_loss
from attnaudit.attention.registry import VARIANTS, Variant
from attnaudit.attention.rpc import RPCAttention
from attnaudit.attention.scaled import ScaledAttention
from attnaudit.attention.softmax import SoftmaxAttention
from attnaudit.attention.swapping import Swap, swap
from attnaudit.attention.symmetric import SymmetricAttention
from attnaudit.attention.temperature import matching_temperatures

__all__ = [
    "VARIANTS",
    "Attention",
    "Diagnosis",
    "PCAPenalty",
    "PrimalAttention",
    "RPCAttention",
    "ScaledAttention",
    "SoftmaxAttention",
    "Swap",
    "SymmetricAttention",
    "Variant",
    "diagnosing",
    "functional",
    "ksvd_loss",
    "matching_temperatures",
    "swap",
]
