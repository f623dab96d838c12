"""The list of measures: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from attnaudit.errors import unknown
from attnaudit.measures import (
    allclose,
    cka,
    columns,
    cosine,
    eigenvalues,
    eigenvectors,
    explained_variance,
    gamma,
    identifiability,
    ksvd,
    legacy,
    low_pass,
    norms,
    prefixes,
    projection,
    step_cosine,
    subspace,
)
from attnaudit.measures.measure import Measure

MEASURES: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        columns.COLUMN_COSINE_MATCHED,
        columns.PROCRUSTES,
        subspace.VALUE_SUBSPACE_OVERLAP,
        subspace.PRINCIPAL_ANGLE_MEDIAN,
        eigenvectors.EIGENVECTOR_RESIDUAL,
        eigenvectors.CENTERING_DEFECT,
        eigenvectors.SUBSPACE_OVERLAP,
        projection.PROJECTION_ALIGNMENT_MATCHED,
        projection.PROJECTION_ALIGNMENT_ROTATED,
        projection.PROJECTION_ERROR_MATCHED,
        projection.PROJECTION_ERROR_ROTATED,
        projection.PROJECTION_ERROR_FLOOR,
        cosine.DIRECT_COSINE_MEAN,
        cosine.DIRECT_COSINE_MAX,
        cosine.MATCHED_COSINE_MEAN,
        cosine.MATCHED_COSINE_MAX,
        cka.LINEAR_CKA,
        cka.LINEAR_CKA_DEBIASED,
        cka.KERNEL_CKA,
        allclose.ALLCLOSE,
        *eigenvalues.EIGENVALUES,
        *eigenvalues.STANDARDISED_EIGENVALUES,
        eigenvalues.EIGENVALUE_BOUND_RATIO,
        norms.PHI_NORM2,
        norms.OUTPUT_NORM2,
        norms.PROJECTION_ERROR_MAE,
        norms.PROJECTION_ERROR_REL_OUTPUT,
        norms.PROJECTION_ERROR_REL_PHI,
        norms.PHI_NORM2_MEDIAN,
        norms.PROJECTION_ERROR_SIGNED,
        norms.OUTPUT_ABOVE_PHI,
        legacy.LEGACY_LOG_PROJECTION_ERROR,
        eigenvectors.GAMMA_ABS,
        eigenvectors.GAMMA_REL,
        *gamma.GAMMA_OF_EIGENVECTORS,
        prefixes.PREFIX_CENTERING_DEFECT,
        prefixes.PREFIX_RANK,
        prefixes.PREFIX_SPAN_AGREEMENT,
        prefixes.PREFIX_COLUMN_AGREEMENT,
        prefixes.LAST_TOKEN_EFFECT,
        prefixes.UNCENTRED_PREFIX_OVERLAP,
        explained_variance.EXPLAINED_VARIANCE,
        explained_variance.OUTPUT_EXPLAINED_VARIANCE,
        explained_variance.RANK_NEEDED,
        step_cosine.STEP_COSINE,
        low_pass.LOW_PASS_SHARE,
        identifiability.KERNEL_RANK,
        identifiability.IDENTIFIABLE,
        ksvd.KSVD_LEFT_OVERLAP,
        ksvd.KSVD_RIGHT_OVERLAP,
        ksvd.KSVD_DUAL_RESIDUAL,
        ksvd.KSVD_OBJECTIVE,
    )
}

#: What an audit computes unless measures are named.
DEFAULT_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.default)


def measure_named(name: str) -> Measure:
    """The measure of that name."""
    if name not in MEASURES:
        raise unknown("measure", name, MEASURES, "attnaudit ls measures")
    return MEASURES[name]
