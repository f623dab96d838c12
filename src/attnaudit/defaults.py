"""Defaults that Python and the command line share, each written once."""

from __future__ import annotations

#: Where to compute: a GPU if there is one.
DEVICE = "auto"
#: Of every random choice.
SEED = 0
#: How many images or passages an audit draws.
LIMIT = 25
#: How often each random reference is drawn.
REPEATS = 4
#: The score from which on a claim counts as met.
THRESHOLD = 0.8
#: The score up to which a claim counts as being at chance.
CHANCE = 0.05
#: On how many inputs `--keep-maps` keeps maps of heads, if it is given no number.
KEPT_MAPS = 2
#: Where runs go that are given no folder.
RUNS = "attnaudit-runs"

#: What `robust` tries unless told otherwise.
ATTACKS = ("noise", "fgsm", "pgd")
EPSILONS = ("1/255", "4/255")
SEVERITIES = (1, 2, 3, 4, 5)
#: Shares of the words of a sentence that noise hits.
RATES = (0.1, 0.3)
PRECISION = "fp32"
#: Where `corrupt` writes.
CORRUPTED = "corrupted"

#: Processes that read images for a training.
READERS = 4
#: What `bench` times.
BENCHED = "deit_tiny_patch16_224"
