"""How numbers are computed: mathematically right, or as the reproduction study's scripts did."""

from __future__ import annotations

from enum import StrEnum

from attnaudit.errors import SettingError, unknown


class Protocol(StrEnum):
    """`exact` is the default; `paper` lands on the published digits, quirks included.

    | | exact | paper |
    | --- | --- | --- |
    | arithmetic | float64, log domain | float32, plain `exp` |
    | guards | none: what cannot be computed is missing | 1e-6 in the kernel, 1e-8 in norms, 1e-10 in ratios |
    | coefficients | eᵢ/√μᵢ, so the axes have unit length | unit eigenvectors |
    | temperature | the model's own | √d |
    | images | the model's own preprocessing | squashed to the input size, ImageNet mean and deviation |
    | attacks | ε in pixels between 0 and 1, true labels | ε on normalised pixels, no clipping, predicted labels |
    """

    EXACT = "exact"
    PAPER = "paper"

    @classmethod
    def _missing_(cls, value: object) -> Protocol:
        raise SettingError(str(unknown("protocol", value, cls)))
