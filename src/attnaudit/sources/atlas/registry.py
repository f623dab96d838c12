"""All models of the atlas by name."""

from __future__ import annotations

from attnaudit.sources.atlas.deit_tiny import DEIT_TINY
from attnaudit.sources.atlas.dinov2_focus import DINOV2_FOCUS
from attnaudit.sources.atlas.entry import AtlasModel
from attnaudit.sources.atlas.gemma3 import GEMMA3
from attnaudit.sources.atlas.latex_ocr import LATEX_OCR
from attnaudit.sources.atlas.mgm import MGM
from attnaudit.sources.atlas.midisim import MIDISIM
from attnaudit.sources.atlas.smollm2 import SMOLLM2
from attnaudit.sources.atlas.stories260k import STORIES260K
from attnaudit.sources.atlas.tabpfn import TABPFN
from attnaudit.sources.atlas.vit_base import VIT_BASE
from attnaudit.sources.atlas.whisper import WHISPER_BASE, WHISPER_TINY

#: By field, a line each.
_MODELS = (
    STORIES260K,
    SMOLLM2,
    GEMMA3,
    WHISPER_TINY,
    WHISPER_BASE,
    MIDISIM,
    DEIT_TINY,
    VIT_BASE,
    DINOV2_FOCUS,
    LATEX_OCR,
    TABPFN,
    MGM,
)  # fmt: skip
ATLAS: dict[str, AtlasModel] = {model.name: model for model in _MODELS}
