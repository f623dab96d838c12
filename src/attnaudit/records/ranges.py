"""Ranges of settings."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from attnaudit.errors import SettingError

_LARGEST_SEED = 2**63 - 2


def check_range(low: float, high: float = math.inf, *, open_low: bool = False, **values: float | None) -> None:
    """Fail, naming the setting, for a value that is not between the bounds; None is allowed.

    Raises:
        SettingError: a value is out of range.
    """
    for name, value in values.items():
        if value is not None and not (low < value <= high if open_low else low <= value <= high):
            bounds = f"{'>' if open_low else '≥'} {low:g}" + (f" and ≤ {high:g}" if high < math.inf else "")
            raise SettingError(f"{name} must be {bounds}, got {value:g}.")


def check_whole(low: int, **values: Any) -> None:
    """Fail, naming the setting, for a value that is not a whole number from `low` on; None is allowed.

    Raises:
        SettingError: a value is none.
    """
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise SettingError(f"{name} must be an integer ≥ {low}, got {value!r}.")
        if value is not None and value < low:
            raise SettingError(f"{name} must be ≥ {low}, got {value}.")


def check_seed(seed: Any) -> None:
    """Fail for what is no seed: torch takes 64 bits, and some commands use the next number, too.

    Raises:
        SettingError: it is none.
    """
    check_whole(0, seed=seed)
    if seed is not None and seed > _LARGEST_SEED:
        raise SettingError(f"seed must be ≤ {_LARGEST_SEED}, got {seed}.")


def check_rate(**values: float) -> None:
    """Fail, naming the setting, for a value that is not a share below 1.

    Raises:
        SettingError: a value is out of range.
    """
    for name, value in values.items():
        if not 0 <= value < 1:
            raise SettingError(f"{name} must be ≥ 0 and < 1, got {value:g}.")
