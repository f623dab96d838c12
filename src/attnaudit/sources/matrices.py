"""Matrices from files, and the digits data set of scikit-learn."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnaudit.errors import InputError
from attnaudit.extras import optional

Matrix = NDArray[np.float64]


def read_matrix(path: Path) -> Matrix:
    """A matrix from a `.npy` file, or from comma-separated text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # imaginary parts would be lost
            warnings.simplefilter("error", UserWarning)  # a file without rows
            content = (
                np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
            )
            return np.asarray(content, dtype=np.float64)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give a .npy or .csv file of numbers.") from error
    except (ValueError, Warning) as error:
        raise InputError(f"{path} is not a matrix of real numbers: give a .npy or .csv file.") from error


def digits() -> Matrix:
    """1797 handwritten digits of 8 x 8 pixels, one per row."""
    datasets = optional("sklearn.datasets", "sklearn", "The digits data set")
    rows: Matrix = datasets.load_digits().data
    return rows
