"""TCR2vec, a BERT of the beta chains of T-cell receptors (Jiang, Zhang, Cai and Li 2023).

It has room for 8,000 tokens, but reads only the thirty letters of TAPE (Rao and others 2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import bert_config
from attnaudit.sources.atlas.checks import restores
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import write_model, write_tokenizer
from attnaudit.sources.weights import read_weights

_WEIGHTS = "tcr2vec.bin"
_SPECIAL = {
    **{"pad_token": "<pad>", "mask_token": "<mask>", "cls_token": "<cls>", "sep_token": "<sep>"},
    "unk_token": "<unk>",
}
_TOKENS = (*_SPECIAL.values(), *"ABCDEFGHIKLMNOPQRSTUVWXYZ")
#: The beta chain of A6, a receptor that binds a peptide of a leukaemia virus (PDB 1AO7).
_A6 = (
    "NAGVTQTPKFQVLKTGQSMTLQCAQDMNHEYMSWYRQDPGMGLRLIHYSVGAGITDQGEVPNGYNVSRSTTEDFPLRLLSAAPSQTSVYFC"
    "ASRPGLAGGRPEQYFGPGTRLTVT"
)


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights = {
        f"cls.predictions.{name.removeprefix('mlm.')}" if name.startswith("mlm.") else name: tensor
        for name, tensor in read_weights(files[_WEIGHTS]).items()
    }
    write_model(folder, bert_config(weights, 8, masked=True), weights)
    write_tokenizer(folder, _TOKENS, _SPECIAL)
    return ()


TCR2VEC = AtlasModel(
    name="tcr2vec",
    field="proteins",
    architecture="BERT, 6 layers, 8 heads, width 128",
    licence="GPL-3.0 by the data of its package, MIT by its licence file",
    megabytes=24,
    files=(
        KnownFile(
            _WEIGHTS,
            "e3f86996b49f0e220250c86c603225c3a5701b29be0944cd13e1cf482b112c10",
            (PackagePart("tcrsep==1.3.1", "tcrsep/models/embedding_model/TCR2vec/pytorch_model.bin"),),
        ),
    ),
    convert=convert,
    check=partial(restores, texts=(_A6,), least=0.7),
    texts=resource_texts("tcr_beta_chains.txt"),
    reads="beta chains of T-cell receptors",
)
