"""Tiny untrained networks in the files of the packages of the atlas: for each encoder, its files and the network."""

import argparse
import io

import torch

from attnaudit.sources.atlas.sapiens import renamed
from tests.sources.atlas.test_onnx_weights import FLOAT, field, node, raw, tensor
from tests.sources.hf_folders import WORDS

SMALL = {"intermediate_size": 40, "max_position_embeddings": 160, "num_hidden_layers": 2}
SMILES_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"cCNOn123()=.-", ">>", "Br", "Cl", "[nH]"]


def drawn(kind, model_type, **config):
    """A network of transformers from seed 0."""
    import transformers

    torch.manual_seed(0)
    settings = transformers.AutoConfig.for_model(model_type, **(SMALL | config))
    return getattr(transformers, kind)(settings).eval()


def saved(content):
    """What `torch.save` writes."""
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def lines(words):
    return "\n".join(words).encode()


def antiberty():
    network = drawn("BertForMaskedLM", "bert", hidden_size=32, num_attention_heads=8, vocab_size=25)
    others = {"cls.species.weight": torch.zeros(6, 32), "cls.chain.bias": torch.zeros(2)}
    return {"antiberty.bin": saved(network.state_dict() | others)}, network.bert


def sapiens(name):
    sizes = {"hidden_size": 32, "num_attention_heads": 8, "vocab_size": 25, "type_vocab_size": 1, "pad_token_id": 1}
    network = drawn("RobertaForMaskedLM", "roberta", layer_norm_eps=1e-5, **sizes)
    torch.nn.init.zeros_(network.roberta.embeddings.token_type_embeddings.weight)
    layer = "decoder.sentence_encoder.layers.{}"
    theirs = {
        "decoder.sentence_encoder.embed_tokens.weight",
        "decoder.sentence_encoder.embed_positions.weight",
        *(f"decoder.sentence_encoder.emb_layer_norm.{own}" for own in ("weight", "bias")),
        *(
            f"{layer.format(number)}.{part}.{own}"
            for number in range(2)
            for part in (
                *(f"self_attn.{kind}_proj" for kind in ("q", "k", "v", "out")),
                *("self_attn_layer_norm", "fc1", "fc2", "final_layer_norm"),
            )
            for own in ("weight", "bias")
        ),
        *(f"decoder.lm_head.{own}" for own in ("weight", "bias", "dense.weight", "dense.bias")),
        *(f"decoder.lm_head.layer_norm.{own}" for own in ("weight", "bias")),
    }
    ours = network.state_dict()
    weights = {name: ours[next(iter(renamed({name: ours})))] for name in sorted(theirs)}
    content = {"args": argparse.Namespace(arch="roberta_small"), "model": weights}
    return {f"{name}.pt": saved(content)}, network.roberta


def tcr2vec():
    network = drawn("BertForMaskedLM", "bert", hidden_size=32, num_attention_heads=8, vocab_size=40, type_vocab_size=1)
    names = {name: name.replace("cls.predictions.", "mlm.") for name in network.state_dict()}
    weights = {names[name]: own for name, own in network.state_dict().items() if name != "cls.predictions.decoder.bias"}
    return {"tcr2vec.bin": saved(weights)}, network.bert


def rxnfp(kind):
    pretrained = kind == "bert_pretrained"
    network = drawn(
        "BertForMaskedLM" if pretrained else "BertModel",
        *("bert",),
        **{"hidden_size": 32, "num_attention_heads": 4, "vocab_size": len(SMILES_WORDS)},
    )
    files = {f"rxnfp-{kind}.bin": saved(network.state_dict()), f"rxnfp-{kind}-vocab.txt": lines(SMILES_WORDS)}
    return files, network.bert if pretrained else network


def albert(layers, heads, words):
    sizes = {"embedding_size": 16, "hidden_size": 48, "num_attention_heads": heads, "vocab_size": words}
    return drawn("AlbertForMaskedLM", "albert", hidden_act="gelu", **sizes, **{"num_hidden_layers": layers})


def rxnmapper():
    network = albert(12, 8, len(SMILES_WORDS))
    return {"rxnmapper.bin": saved(network.state_dict()), "rxnmapper-vocab.txt": lines(SMILES_WORDS)}, network.albert


def albert_tiny_zh():
    network = albert(4, 12, len(WORDS))
    name = "albert-tiny-chinese"
    return {f"{name}.bin": saved(network.state_dict()), f"{name}-vocab.txt": lines(WORDS)}, network.albert


def electra_ltp_tiny():
    network = drawn(
        *("ElectraForTokenClassification", "electra"),
        **{"embedding_size": 16, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": len(WORDS)},
    )
    weights = {
        name.replace("electra.", "backbone.").replace("classifier.", "task_heads.cws.classifier.0."): own
        for name, own in network.state_dict().items()
    }
    weights["task_heads.pos.classifier.0.weight"] = torch.zeros(27, 32)
    return {"ltp_tiny.bin": saved(weights), "ltp_tiny-vocab.txt": lines(WORDS)}, network.electra


def m3e_small():
    import tokenizers

    network = drawn("BertModel", "bert", hidden_size=32, num_attention_heads=8, vocab_size=len(WORDS))
    rules = tokenizers.BertWordPieceTokenizer({word: place for place, word in enumerate(WORDS)})
    files = {"m3e-small.bin": saved(network.state_dict()), "m3e-small-tokenizer.json": rules.to_str().encode()}
    about = b'{"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"}'
    return files | {"m3e-small-tokenizer_config.json": about}, network


def minilm_l3():
    network = drawn("BertModel", "bert", hidden_size=48, num_attention_heads=12, vocab_size=len(WORDS))
    graph = []
    for name, own in network.state_dict().items():
        known = f"model.0.auto_model.{name}"
        if name.startswith("encoder.") and name.endswith(
            ("dense.weight", "query.weight", "key.weight", "value.weight")
        ):
            unnamed, own = f"onnx::MatMul_{len(graph)}", own.T.contiguous()
            steps = known.removesuffix(".weight").replace("model.0.", "model/model.0/").replace(".layer.", "/layer.")
            place = "/" + steps.replace("auto_model.encoder", "auto_model/encoder")
            for part in ("attention", "intermediate", "output", "self", "dense", "query", "key", "value"):
                place = place.replace(f".{part}", f"/{part}")
            graph.append((1, node(f"{place}/MatMul", "MatMul", "hidden", unnamed)))
            known = unnamed
        graph.append((5, tensor(known, list(own.shape), FLOAT, raw(own))))
    whole = b"".join(field(key, content) for key, content in graph)
    return {"paraphrase-MiniLM-L3-v2.onnx": field(7, whole), "uncased-vocab.txt": lines(WORDS)}, network
