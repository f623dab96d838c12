"""AntiBERTy, a BERT of the variable domains of antibodies (Ruffolo, Gray and Sulam 2021).

A token is an amino acid. It was also taught to tell species and chain of a sequence: those heads are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import bert_config
from attnaudit.sources.atlas.checks import restores
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import BERT_SPECIAL, write_model, write_tokenizer
from attnaudit.sources.weights import read_weights

_WEIGHTS = "antiberty.bin"
_TOKENS = (*BERT_SPECIAL.values(), *"ACDEFGHIKLMNPQRSTVWY")
_OTHER_HEADS = ("cls.species.", "cls.chain.", "cls.graft.")
#: Trastuzumab, heavy and light chain.
TRASTUZUMAB = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS",
    "DIQMTQSPSSLSASVGDRVTITCRASQDVNTAVAWYQQKPGKAPKLLIYSASFLYSGVPSRFSGSRSGTDFTLTISSLQPEDFATYYCQQHYTTPPTFGQGTKVEIK",
)


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights = {name: own for name, own in read_weights(files[_WEIGHTS]).items() if not name.startswith(_OTHER_HEADS)}
    write_model(folder, bert_config(weights, 8, masked=True), weights)
    write_tokenizer(folder, _TOKENS, BERT_SPECIAL)
    return ()


ANTIBERTY = AtlasModel(
    name="antiberty",
    field="proteins",
    architecture="BERT, 8 layers, 8 heads, width 512",
    licence="MIT",
    megabytes=97,
    files=(
        KnownFile(
            _WEIGHTS,
            "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137",
            (PackagePart("antiberty==0.1.3", "antiberty/trained_models/AntiBERTy_md_smooth/pytorch_model.bin"),),
        ),
    ),
    convert=convert,
    check=partial(restores, texts=TRASTUZUMAB, least=0.7),
    texts=resource_texts("antibody_heavy_chains.txt"),
    reads="antibody heavy chains",
)
