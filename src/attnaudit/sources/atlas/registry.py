"""All models of the atlas by name."""

from __future__ import annotations

from attnaudit.sources.atlas.albert_tiny_zh import ALBERT_TINY_ZH
from attnaudit.sources.atlas.antiberty import ANTIBERTY
from attnaudit.sources.atlas.deit_tiny import DEIT_TINY
from attnaudit.sources.atlas.dinov2_focus import DINOV2_FOCUS
from attnaudit.sources.atlas.electra_ltp_tiny import ELECTRA_LTP_TINY
from attnaudit.sources.atlas.entry import AtlasModel
from attnaudit.sources.atlas.gemma3 import GEMMA3
from attnaudit.sources.atlas.latex_ocr import LATEX_OCR
from attnaudit.sources.atlas.m3e_small import M3E_SMALL
from attnaudit.sources.atlas.mgm import MGM
from attnaudit.sources.atlas.midisim import MIDISIM
from attnaudit.sources.atlas.minilm_l3 import MINILM_L3
from attnaudit.sources.atlas.rxnfp import RXNFP, RXNFP_FT
from attnaudit.sources.atlas.rxnmapper import RXNMAPPER
from attnaudit.sources.atlas.sapiens import SAPIENS_VH, SAPIENS_VL
from attnaudit.sources.atlas.sceptr import SCEPTR, SCEPTR_LARGE
from attnaudit.sources.atlas.smollm2 import SMOLLM2
from attnaudit.sources.atlas.stories260k import STORIES260K
from attnaudit.sources.atlas.tabpfn import TABPFN
from attnaudit.sources.atlas.tcr2vec import TCR2VEC
from attnaudit.sources.atlas.transkun import TRANSKUN
from attnaudit.sources.atlas.vit_base import VIT_BASE
from attnaudit.sources.atlas.whisper import WHISPER_BASE, WHISPER_TINY

#: By field, a line each.
_MODELS = (
    MINILM_L3,
    M3E_SMALL,
    ALBERT_TINY_ZH,
    ELECTRA_LTP_TINY,
    STORIES260K,
    SMOLLM2,
    GEMMA3,
    WHISPER_TINY,
    WHISPER_BASE,
    MIDISIM,
    TRANSKUN,
    DEIT_TINY,
    VIT_BASE,
    DINOV2_FOCUS,
    LATEX_OCR,
    ANTIBERTY,
    SAPIENS_VH,
    SAPIENS_VL,
    SCEPTR,
    SCEPTR_LARGE,
    TCR2VEC,
    RXNFP,
    RXNFP_FT,
    RXNMAPPER,
    TABPFN,
    MGM,
)  # fmt: skip
ATLAS: dict[str, AtlasModel] = {model.name: model for model in _MODELS}
