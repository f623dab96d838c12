"""The numbers of Sarıtaş & Yıldız (2025, arXiv:2505.07908), as printed: Tables 1 to 4.

A value is `(mean,)` or `(mean, standard deviation over images)`; `None` where our copy of the text is unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Value = tuple[float, ...] | None
Row = Mapping[str, Value]

#: Architecture and the timm tag that `pretrained=True` took at the time.
VISION_MODELS: Mapping[str, str] = {
    "vit_tiny_patch16_224": "augreg_in21k_ft_in1k",
    "vit_small_patch16_224": "augreg_in21k_ft_in1k",
    "vit_base_patch16_224": "augreg2_in21k_ft_in1k",
    "vit_large_patch16_224": "augreg_in21k_ft_in1k",
    "deit_tiny_patch16_224": "fb_in1k",
    "deit_small_patch16_224": "fb_in1k",
    "deit_base_patch16_224": "fb_in1k",
    "deit_tiny_distilled_patch16_224": "fb_in1k",
    "deit_small_distilled_patch16_224": "fb_in1k",
    "deit_base_distilled_patch16_224": "fb_in1k",
}


def _rows(columns: Sequence[str], numbers: Mapping[str, Sequence[Value]]) -> dict[str, Row]:
    return {model: dict(zip(columns, values, strict=True)) for model, values in numbers.items()}


#: Cosine similarity and CKA of V and V̇; MDC and MOC are maxima over all heads of token means, CKA means over heads.
TABLE1 = _rows(
    ("MDC", "MOC", "LCKA", "KCKA"),
    {
        "vit_tiny_patch16_224": ((0.09,), (0.29,), (0.06,), (0.28,)),
        "vit_small_patch16_224": ((0.11,), (0.30,), (0.05,), (0.27,)),
        "vit_base_patch16_224": ((0.14,), (0.30,), (0.06,), (0.28,)),
        "vit_large_patch16_224": ((0.13,), (0.30,), (0.06,), (0.25,)),
        "deit_tiny_patch16_224": ((0.15,), (0.31,), (0.11,), (0.31,)),
        "deit_small_patch16_224": ((0.11,), (0.31,), (0.08,), (0.28,)),
        "deit_base_patch16_224": ((0.12,), (0.32,), (0.10,), (0.29,)),
        "deit_tiny_distilled_patch16_224": ((0.11,), (0.31,), (0.11,), (0.32,)),
        "deit_small_distilled_patch16_224": ((0.11,), (0.31,), (0.09,), (0.29,)),
        "deit_base_distilled_patch16_224": ((0.11,), (0.32,), (0.10,), (0.28,)),
    },
)

_STATISTICS = ("max", "min", "mean", "median")

#: Eigenvalues of K̃ in units of 1e-6, keys standardised per token.
TABLE2 = _rows(
    _STATISTICS,
    {
        "vit_tiny_patch16_224": ((147, 11), (17, 5), (37, 7), (30, 7)),
        "vit_small_patch16_224": ((181, 22), (17, 4), (36, 6), (28, 5)),
        "vit_base_patch16_224": ((206, 30), (15, 4), (33, 6), (25, 5)),
        "vit_large_patch16_224": ((177, 22), (21, 5), (42, 6), (34, 6)),
        "deit_tiny_patch16_224": ((325, 5), (34, 10), (65, 10), (53, 11)),
        "deit_small_patch16_224": ((306, 4), (34, 9), (66, 11), (54, 11)),
        "deit_base_patch16_224": ((259, 7), (35, 9), (64, 10), (54, 10)),
        "deit_tiny_distilled_patch16_224": ((205, 7), (32, 9), (61, 10), (51, 10)),
        "deit_small_distilled_patch16_224": ((224, 7), (33, 9), (63, 10), (53, 10)),
        "deit_base_distilled_patch16_224": ((226, 6), (36, 9), (67, 10), (56, 10)),
    },
)

#: The same with raw keys, the starred rows of Table 3; four models are missing there.
TABLE3_RAW = _rows(
    _STATISTICS,
    {
        "vit_tiny_patch16_224": ((178, 19), (4, 2), (16, 3), (9, 3)),
        "vit_large_patch16_224": ((497, 36), (7, 2), (31, 2), (15, 2)),
        "deit_tiny_patch16_224": ((1043, 99), (34, 11), (96, 15), (60, 14)),
        "deit_small_patch16_224": (None, (25, 8), (87, 11), (46, 11)),
        "deit_tiny_distilled_patch16_224": (None, (27, 8), (78, 12), (49, 11)),
        "deit_small_distilled_patch16_224": ((1153, 151), (23, 7), (78, 10), (43, 10)),
    },
)

#: Language encoders of Table 4; MDC and MOC are means over heads of the best token and the best matched pair here.
TABLE4 = _rows(
    ("MDC", "MOC", "LCKA", "KCKA"),
    {
        "google/electra-small-discriminator": ((0.22,), (0.40,), (0.07,), (0.28,)),
        "sentence-transformers/all-MiniLM-L6-v2": ((0.40,), (0.57,), (0.13,), (0.38,)),
        "bert-base-uncased": ((0.30,), (0.45,), (0.07,), (0.29,)),
        "camembert-base": ((0.30,), (0.46,), (0.09,), (0.30,)),
        "google/electra-base-discriminator": ((0.27,), (0.46,), (0.05,), (0.29,)),
        "roberta-base": ((0.15,), (0.30,), (0.05,), (0.35,)),
        "allenai/longformer-base-4096": ((0.18,), (0.21,), (0.03,), (0.45,)),
        "studio-ousia/luke-base": ((0.14,), (0.30,), (0.05,), (0.34,)),
        "xlm-roberta-base": ((0.20,), (0.38,), (0.05,), (0.29,)),
    },
)

#: Our name for a model of the tables, where it differs from theirs.
SAME_MODEL: Mapping[str, str] = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "vit-base": "vit_base_patch16_224",
}

#: What Teo & Nguyen (2024) report as eigenvalues of K̃.
TEO_NGUYEN_EIGENVALUES: Mapping[str, float] = {"max": 648.46, "min": 4.65, "mean": 40.07, "median": 17.73}
