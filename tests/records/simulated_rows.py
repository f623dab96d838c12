"""Rows of evidence as odd as they come: groups, windows, missing numbers, heads that decide nothing or cannot."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from attnaudit.records.schema import SCHEMA

MODEL = "model"
#: Inputs that belong together; all others stand for themselves.
GROUPS = {"input-0": "document", "input-1": "document", "input-9": "document", "input-4": "pair", "input-5": "pair"}
MEASURES = ("value_subspace_overlap", "column_cosine_matched", "procrustes")
#: By theory: its measures, and its null with the number of draws.
THEORIES = {
    "kpca": (MEASURES, "random_projection", 4),
    "ksvd": (MEASURES, "rotated", 1),
    "keys-linear": (("explained_variance",), "random_keys", 4),
}
#: References on the first two inputs only, with their repeats, and their distance from the null.
SAMPLED = {"planted_with_noise": 5, "reparametrised": 4, "reparametrised_null": 4}
ROLES = (
    "random_projection",
    "rotated",
    "random_keys",
    "best_projection",
    "best_projection_fitted",
    "planted",
    *SAMPLED,
)


@dataclass(frozen=True)
class Simulation:
    """Three layers of two heads; the second has windows, and theorems exclude the third for `ksvd`."""

    seed: int = 0
    inputs: int = 12
    lost: float = 0.04
    uninformative: float = 0.05
    unidentifiable: float = 0.05

    def rows(self):
        generator = np.random.default_rng(self.seed)
        found = []
        for theory, (measures, null, draws) in THEORIES.items():
            for place in range(self.inputs):
                for layer, head in np.ndindex(3, 2):
                    excluded = theory == "ksvd" and layer == 2
                    at = {"theory": theory, "input": f"input-{place}", "layer": layer, "head": head}
                    if theory == "ksvd":
                        found.append(_row(at, "possible", "observed", None if excluded else 1.0, reason="a theorem"))
                    for window in range(3 if layer == 1 else 1):
                        here = {**at, "window": window}
                        refused = generator.random() < self.unidentifiable
                        found.append(_row(here, "identifiable", "observed", None if refused else 1.0, reason="no rank"))
                        for measure in measures if not excluded else ():
                            found += self._head(generator, here, measure, null, draws, place)
        return pa.Table.from_pylist(found, schema=SCHEMA)

    def _head(self, generator, at, measure, null, draws, place):
        base, skew = generator.normal(0.3, 0.02), generator.exponential(0.1)
        ideal = base - 0.01 if generator.random() < self.uninformative else 1.0
        values = {
            "observed": [base + skew],
            null: base + generator.normal(0, 0.03, draws),
            "planted": [ideal],
            "untrained": [base] if place < 2 else [],
        }
        if measure == "value_subspace_overlap":
            values |= {"best_projection": [base + 0.1 + skew], "best_projection_fitted": [base + 0.3]}
        if place < 2:
            values |= {name: base + generator.uniform(0, 0.7, repeats) for name, repeats in SAMPLED.items()}
            values["planted_with_noise"] = 1 - 0.6 * np.linspace(0.1, 1, SAMPLED["planted_with_noise"])
        for reference, numbers in values.items():
            for repeat, number in enumerate(numbers):
                missing = generator.random() < self.lost
                yield _row(at, measure, reference, None if missing else float(number), repeat, "a pole")


def _row(at, measure, reference, value, repeat=0, reason=None):
    return {
        "model": MODEL,
        "window": 0,
        **at,
        "reference": reference,
        "repeat": repeat,
        "measure": measure,
        "value": value,
        "reason": reason if value is None else None,
        "protocol": "exact",
        "tokens": 20,
        "dim": 4,
        "step": None,
    }
