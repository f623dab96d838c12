"""Attacks on classifiers, in torch: batched, on any device, without a package.

They are written out here, and foolbox and pyautoattack are what the tests hold them against: a machine with a GPU may
have neither, both wait for the device inside their loops, and SPSA is in none of them.
"""

from attnaudit.robustness.attacks.norms import Norm, distance
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.registry import Attack, attack_named, attacks

__all__ = ["Attack", "Norm", "Problem", "attack_named", "attacks", "distance"]
