"""Kernel PCA of the keys."""

from __future__ import annotations

from attnaudit.capture.heads import Heads
from attnaudit.kernel import paper
from attnaudit.kernel.prediction import Prediction, kernel_pca_values
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.base import Identifiability, forces_zero_values, too_few_tokens
from attnaudit.theories.ties import problems_of_ties


def _not_identifiable(heads: Heads, spectrum: Spectrum) -> tuple[str | None, ...]:
    """With N - 1 ≤ d tokens, or a kernel of rank ≤ d, the leading d eigenvectors span all that a head can have.

    d is the number of columns that are predicted: those of the values, which may be wider than the keys. Eigenvectors
    of equal eigenvalues may be mixed at will, as those of keys of one length that are far from one another: which of
    them are predicted is then up to rounding.
    """
    columns = heads.value.shape[-1]
    return tuple(
        few or lost or (f"its kernel has rank {rank}, not above d = {columns}" if rank <= columns else tied)
        for few, lost, rank, tied in zip(
            too_few_tokens(heads, spectrum),
            spectrum.problems,
            spectrum.numerical_rank.tolist(),
            problems_of_ties(spectrum.scaled_eigenvalues[:, :columns], "eigenvalues"),
            strict=True,
        )
    )


class KernelPCA:
    """Teo & Nguyen (2024): V̇ = G(I - 1_N)A, the kernel-PCA coefficients of the keys over their kernel masses."""

    name = "kpca"
    text = "kernel PCA of the keys (Teo & Nguyen 2024)"
    guard = Identifiability("N ≥ 2d tokens, a kernel of rank above d, and eigenvalues that differ", _not_identifiable)
    impossible = staticmethod(forces_zero_values)

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """In the normalisation of the protocol."""
        return paper.kernel_pca_values(spectrum) if protocol is Protocol.PAPER else kernel_pca_values(spectrum)
