"""Make the shipped model of a finished training: averaged weights in float16, and a card with what they are worth.

    attnaudit train vit-small-cifar --data cifar10 --compile --graph --out runs/vit
    python benchmarks/ship_model.py runs/vit --data cifar10

The accuracy on the card is that of the float16 weights, computed in float32 on all test images.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from safetensors.torch import load_file, save

from attnaudit.records import json_file
from attnaudit.records.card import CARD, ImageCard
from attnaudit.records.files import write_whole
from attnaudit.records.recipe import ImageRecipe
from attnaudit.sources.cards import read_card
from attnaudit.sources.labelled import training_and_test
from attnaudit.sources.trained_models import BUILT_IN, WEIGHTS
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batching import Layout, image_batches
from attnaudit.training.distributed import Ranks
from attnaudit.training.image_task import evaluate_classifier
from attnaudit.training.recipe_file import read_recipe

AVERAGE = "average.safetensors"
LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of attnaudit train")
    parser.add_argument("--data", type=Path, required=True, help="folder of CIFAR-10")
    parser.add_argument("--name", default="vit-small-cifar")
    arguments = parser.parse_args()
    card = read_card(arguments.run)
    assert isinstance(card, ImageCard)
    recipe = read_recipe(arguments.name)
    assert isinstance(recipe, ImageRecipe)
    half = {name: tensor.half() for name, tensor in load_file(arguments.run / AVERAGE).items()}
    model = build_vision_transformer(card.architecture, 0)
    model.load_state_dict({name: tensor.float() for name, tensor in half.items()})
    train, test = training_and_test(arguments.data)
    batches = image_batches(test, recipe, Layout(len(test), 500, 0, Ranks()), "cpu", 0)
    pixels = DeviceAugmentation(recipe.augmentation, recipe.model.classes, "cpu")
    score = evaluate_classifier(model, batches, pixels, "fp32", Ranks())
    history = json.loads((arguments.run / "history.json").read_text())["epochs"]
    facts = {
        "recipe": recipe.name,
        "seed": card.facts["seed"],
        "data": f"CIFAR-10, {len(train):,} training images as JPEG",
        "epochs": len(history),
        "steps": history[-1]["step"],
        "weights": "exponential moving average, stored in float16",
        "test_accuracy": score.accuracy,
        "test_loss": round(score.loss, 4),
        "test_images": score.images,
    }
    folder = BUILT_IN / recipe.name
    write_whole(folder / WEIGHTS, save(half))
    json_file.write(folder / CARD, replace(card, name=recipe.name, labels=LABELS, facts=facts))
    print(f"{folder}: {score.accuracy:.2%} of {score.images:,} images")


if __name__ == "__main__":
    main()
