"""What is installed here, as far as numbers can depend on it."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "timm", "transformers", "imagecorruptions-imaug")


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute, by name; those not installed are left out."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
