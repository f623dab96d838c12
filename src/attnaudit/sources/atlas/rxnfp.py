"""RXNFP, two BERTs of chemical reactions (Schwaller and others 2021).

One was pretrained; the other was then taught to tell classes of reactions, and its first token is the fingerprint of a
reaction. A reaction is the SMILES of its precursors and products; a token is an atom, a bond, or a bracket.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import bert_config
from attnaudit.sources.atlas.checks import pairs_up, restores
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import BERT_SPECIAL, write_model, write_tokenizer
from attnaudit.sources.weights import read_weights

#: One token of SMILES: an atom in brackets, one with two letters, the arrow, a ring above nine, any other character.
SMILES = r"\[[^\]]+\]|Br|Cl|>>|%[0-9]{2}|."
REACTIONS = resource_texts("reactions.txt")
#: The condensation of an acid with an amine, and a coupling of two rings.
KNOWN = (
    "Nc1cccc2cnccc12.O=C(O)c1cc([N+](=O)[O-])c(Sc2c(Cl)cncc2Cl)s1>>O=C(Nc1cccc2cnccc12)c1cc([N+](=O)[O-])c(Sc2c(Cl)cncc2Cl)s1",
    "COc1ccc(B(O)O)cc1.Fc1ccc(Br)cc1>>COc1ccc(-c2ccc(F)cc2)cc1",
)
#: Two of a class one after the other: amides, biaryls, removals of Boc, hydrolyses of esters, reductions of nitro
#: groups, sulfonamides.
_CLASSES = (
    "CC(=O)O.NCc1ccccc1>>CC(=O)NCc1ccccc1",
    "O=C(O)c1ccncc1.C1CCNCC1>>O=C(c1ccncc1)N1CCCCC1",
    "Brc1ccc(F)cc1.OB(O)c1ccccc1>>Fc1ccc(-c2ccccc2)cc1",
    "COc1ccc(B(O)O)cc1.Clc1ncccn1>>COc1ccc(-c2ncccn2)cc1",
    "CC(C)(C)OC(=O)N1CCC(O)CC1>>OC1CCNCC1",
    "CC(C)(C)OC(=O)NCc1ccc(Cl)cc1>>NCc1ccc(Cl)cc1",
    "COC(=O)c1ccc(Br)cc1>>O=C(O)c1ccc(Br)cc1",
    "CCOC(=O)CCC1CCCCC1>>O=C(O)CCC1CCCCC1",
    "O=[N+]([O-])c1ccc(Cl)cc1>>Nc1ccc(Cl)cc1",
    "COc1cc(C#N)ccc1[N+](=O)[O-]>>COc1cc(C#N)ccc1N",
    "CS(=O)(=O)Cl.Nc1ccccc1>>CS(=O)(=O)Nc1ccccc1",
    "Cc1ccc(S(=O)(=O)Cl)cc1.C1COCCN1>>Cc1ccc(S(=O)(=O)N2CCOCC2)cc1",
)


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights, words = files.values()
    tensors = read_weights(weights)
    config = bert_config(tensors, 4, masked="cls.predictions.bias" in tensors)
    write_model(folder, config, tensors)
    write_tokenizer(folder, words.read_text("utf-8").split(), BERT_SPECIAL, SMILES)
    return ()


def _files(kind: str, sha256: str) -> tuple[KnownFile, KnownFile]:
    package, place = "rxnfp==0.1.0", f"rxnfp/models/transformers/{kind}"
    return (
        KnownFile(f"rxnfp-{kind}.bin", sha256, (PackagePart(package, f"{place}/pytorch_model.bin"),)),
        KnownFile(
            f"rxnfp-{kind}-vocab.txt",
            "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
            (PackagePart(package, f"{place}/vocab.txt"),),
        ),
    )


RXNFP = AtlasModel(
    name="rxnfp",
    field="chemistry",
    architecture="BERT, 12 layers, 4 heads, width 256",
    licence="MIT",
    megabytes=75,
    files=_files("bert_pretrained", "50a6ed263d33ae759affa82c1e85554cc5ea9f56145f5c7fb39b6c25d4356437"),
    convert=convert,
    check=partial(restores, texts=KNOWN, least=0.8),
    texts=REACTIONS,
    reads="reactions as SMILES",
)
RXNFP_FT = AtlasModel(
    name="rxnfp-ft",
    field="chemistry",
    architecture="BERT, 12 layers, 4 heads, width 256, taught classes of reactions",
    licence="MIT",
    megabytes=75,
    files=_files("bert_ft", "5bb7f9f5831ec16a4b90545f95394853caf19ff9a8272291c86e0b231e0ff2ba"),
    convert=convert,
    check=partial(pairs_up, texts=_CLASSES, of="reactions with one of their class", first=True),
    texts=REACTIONS,
    reads="reactions as SMILES",
)
