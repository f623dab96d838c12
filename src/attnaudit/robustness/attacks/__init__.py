"""Attacks on classifiers in plain torch, batched, on any device.

We implement them ourselves and test them against foolbox and pyautoattack, because these may be missing on a GPU
machine, synchronise with the device inside their loops, and lack SPSA.
"""

from attnaudit.robustness.attacks.norms import Norm, distance
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.registry import Attack, attack_named, attacks

__all__ = ["Attack", "Norm", "Problem", "attack_named", "attacks", "distance"]
