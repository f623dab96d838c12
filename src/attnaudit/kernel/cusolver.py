"""All eigenpairs of many small symmetric matrices at once, on an NVIDIA GPU.

There torch's `eigh` solves a batch one matrix at a time. cuSOLVER's `cusolverDnXsyevBatched` (CUDA 12.6 and later)
solves the whole batch. torch has already loaded the library for its own linear algebra but does not expose this
function, so it is called through ctypes; `available` says whether it exists.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor

from attnaudit.errors import NumericalError

_TYPES = {torch.float32: 0, torch.float64: 1}  # CUDA_R_32F, CUDA_R_64F
_VALUES_ONLY, _WITH_VECTORS, _LOWER = 0, 1, 0
_NAMES = ("libcusolver.so.12", "libcusolver.so.11")
#: Matrices per call: bounds the workspace; larger batches are no faster.
_BATCH = 1024


def available(matrix: Tensor) -> bool:
    """Whether cuSOLVER can solve these matrices on this machine."""
    return matrix.is_cuda and matrix.dtype in _TYPES and _library() is not None


def batched_eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (batch, n), ascending, and eigenvectors (batch, n, n) in columns."""
    vectors = matrix.clone(memory_format=torch.contiguous_format)
    return _in_batches(vectors, _WITH_VECTORS), vectors.mT


def batched_eigvalsh(matrix: Tensor) -> Tensor:
    """Eigenvalues (batch, n), ascending."""
    return _in_batches(matrix.clone(memory_format=torch.contiguous_format), _VALUES_ONLY)


def _in_batches(matrix: Tensor, job: int) -> Tensor:
    """The eigenvalues; the matrices are overwritten, by their eigenvectors if these are asked for."""
    return torch.cat([_solve(part, job) for part in matrix.split(_BATCH)])  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    torch.linalg.eigh(torch.eye(2, device="cuda"))  # makes torch load cuSOLVER
    for name in (*_NAMES, *_beside_torch()):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "cusolverDnXsyevBatched"):
            return library
    return None


def _beside_torch() -> Iterator[str]:
    """Where the wheels that torch depends on put the library: those of CUDA 13, and those of CUDA 12."""
    for package in ("nvidia.cu13", "nvidia.cusolver"):
        try:
            found = find_spec(package)
        except ModuleNotFoundError:  # there is not even a package `nvidia`
            return
        for folder in (found and found.submodule_search_locations) or ():
            yield from (f"{folder}/lib/{name}" for name in _NAMES)


@lru_cache(maxsize=8)
def _handles(device: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """A solver handle and its parameters, kept until the process ends."""
    solver, parameters = ctypes.c_void_p(), ctypes.c_void_p()
    _checked(_loaded().cusolverDnCreate(ctypes.byref(solver)))
    _checked(_loaded().cusolverDnCreateParams(ctypes.byref(parameters)))
    return solver, parameters


def _loaded() -> ctypes.CDLL:
    library = _library()
    if library is None:
        raise NumericalError("cuSOLVER has no batched eigensolver here: install CUDA 12.6 or later.")
    return library


def _solve(matrix: Tensor, job: int) -> Tensor:
    """One call; it overwrites the matrices, by their eigenvectors as rows in torch's memory order if asked for."""
    library = _loaded()
    count, size = matrix.shape[0], matrix.shape[-1]
    values = matrix.new_empty(count, size)
    info = torch.zeros(count, dtype=torch.int32, device=matrix.device)
    with torch.cuda.device(matrix.device):
        solver, parameters = _handles(matrix.device.index or 0)
        stream = torch.cuda.current_stream().cuda_stream
        _checked(library.cusolverDnSetStream(solver, ctypes.c_void_p(stream)))
        kind, length = _TYPES[matrix.dtype], ctypes.c_int64(size)
        problem = (
            solver,
            parameters,
            job,
            _LOWER,
            length,
            kind,
            ctypes.c_void_p(matrix.data_ptr()),
            length,
            kind,
            ctypes.c_void_p(values.data_ptr()),
            kind,
        )
        on_device, on_host = ctypes.c_size_t(), ctypes.c_size_t()
        batch = ctypes.c_int64(count)
        sizes = ctypes.byref(on_device), ctypes.byref(on_host)
        _checked(library.cusolverDnXsyevBatched_bufferSize(*problem, *sizes, batch))
        workspace = torch.empty(max(on_device.value, 1), dtype=torch.uint8, device=matrix.device)
        host = ctypes.create_string_buffer(max(on_host.value, 1))
        buffers = ctypes.c_void_p(workspace.data_ptr()), on_device, host, on_host
        _checked(library.cusolverDnXsyevBatched(*problem, *buffers, ctypes.c_void_p(info.data_ptr()), batch))
    return values.masked_fill(info[:, None] != 0, torch.nan)


def _checked(status: int) -> None:
    if status != 0:
        raise NumericalError(f"cuSOLVER's batched eigensolver failed with status {status}.")
