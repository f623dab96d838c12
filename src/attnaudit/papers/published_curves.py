"""The training curves behind Figures 1 and 4 of Sarıtaş & Yıldız (2025, arXiv:2505.07908), at six epochs.

Read from the logs in the study's repository. The two networks differ in the number of heads alone, so the head width
tells them apart. One fixed batch of 256 images each: `train` augmented and in training mode, `test` as it is and in
evaluation mode; means over tokens, heads and layers. Both trainings stop long before the 300 epochs they were set to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Epochs as the study counts them, from 0; the last one differs by series. It measures at the end of an epoch.
EPOCHS = (0, 1, 10, 50, 100)


@dataclass(frozen=True)
class PublishedCurve:
    """One series: its values at `EPOCHS` and at its last epoch."""

    last_epoch: int
    values: tuple[float, float, float, float, float, float]

    @property
    def points(self) -> tuple[tuple[int, float], ...]:
        """(epochs of training that were done, value): what is measured at the end of epoch e has seen e + 1."""
        return tuple((epoch + 1, value) for epoch, value in zip((*EPOCHS, self.last_epoch), self.values, strict=True))


@dataclass(frozen=True)
class PublishedTraining:
    """A network of the study: its name there, and a curve per (measure, batch)."""

    name: str
    curves: Mapping[tuple[str, str], PublishedCurve]


_J, _H, _PHI = "projection_error_mae", "output_norm2", "phi_norm2"
_REL_H, _REL_PHI = "projection_error_rel_output", "projection_error_rel_phi"

#: By head width: 3 heads of 64, or 6 of 32, in a network of width 192.
TRAININGS: Mapping[int, PublishedTraining] = {
    64: PublishedTraining(
        "ViT-Tiny",
        {
            (_J, "train"): PublishedCurve(134, (67.66, 12039, 5.646, 4.061, 3.515, 3.278)),
            (_J, "test"): PublishedCurve(134, (22.47, 5993, 7.355, 4.447, 3.950, 3.562)),
            (_H, "train"): PublishedCurve(134, (11.15, 9.281, 5.650, 4.063, 3.520, 3.285)),
            (_H, "test"): PublishedCurve(134, (14.44, 12.68, 7.365, 4.450, 3.962, 3.569)),
            (_PHI, "train"): PublishedCurve(134, (56.64, 12030, 2.32e-2, 1.98e-3, 4.74e-3, 6.37e-3)),
            (_PHI, "test"): PublishedCurve(134, (8.465, 5981, 1.73e-2, 3.31e-3, 1.30e-2, 8.13e-3)),
            (_REL_H, "train"): PublishedCurve(135, (4.307, 695.9, 0.9994, 0.9994, 0.9986, 0.9975)),
            (_REL_H, "test"): PublishedCurve(134, (1.552, 406.0, 0.9986, 0.9993, 0.9980, 0.9980)),
            (_REL_PHI, "train"): PublishedCurve(135, (2.23e5, 1.26e6, 9.41e5, 6.14e5, 8.19e5, 9.93e5)),
            (_REL_PHI, "test"): PublishedCurve(134, (2.93e5, 1.46e6, 9.99e6, 7.53e5, 6.80e5, 9.63e5)),
        },
    ),
    32: PublishedTraining(
        "DeiT-Tiny",
        {
            (_J, "train"): PublishedCurve(127, (4.926, 4.275, 2.638, 2.191, 1.954, 1.858)),
            (_J, "test"): PublishedCurve(127, (6.811, 6.254, 3.829, 2.467, 2.088, 1.959)),
            (_H, "train"): PublishedCurve(127, (4.896, 4.228, 2.640, 2.192, 1.957, 1.862)),
            (_H, "test"): PublishedCurve(127, (6.801, 6.237, 3.831, 2.468, 2.090, 1.963)),
            (_PHI, "train"): PublishedCurve(127, (4.41e-2, 6.45e-2, 3.25e-3, 8.65e-4, 2.35e-3, 4.83e-3)),
            (_PHI, "test"): PublishedCurve(127, (1.59e-2, 2.97e-2, 2.95e-3, 8.70e-4, 2.18e-3, 4.40e-3)),
            (_REL_H, "train"): PublishedCurve(128, (1.0045, 1.0125, 0.9991, 0.9996, 0.9989, 0.9980)),
            (_REL_H, "test"): PublishedCurve(128, (1.0016, 1.0027, 0.9993, 0.9996, 0.9991, 0.9982)),
            (_REL_PHI, "train"): PublishedCurve(128, (1.37e5, 2.74e5, 1.14e6, 1.04e6, 6.10e5, 7.00e5)),
            (_REL_PHI, "test"): PublishedCurve(128, (2.65e5, 4.10e5, 9.33e6, 1.29e6, 5.67e5, 8.03e5)),
        },
    ),
}
