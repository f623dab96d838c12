import random

import pytest

from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.images import ImageShard, choose_images, find_images, image_shards

pytest.importorskip("timm")


def test_images_are_found_nested_and_in_order(image_folder):
    (image_folder / "notes.txt").write_text("not an image")
    (image_folder / "LOUD.PNG").write_bytes((image_folder / "class0/image0.png").read_bytes())
    names = [path.relative_to(image_folder).as_posix() for path in find_images(image_folder)]
    assert names == sorted(names)
    assert len(names) == 7


def test_the_choice_is_that_of_the_study(tmp_path):
    """The first indices of the study's 50,000 validation images: seed 0, `random.sample`."""
    paths = [tmp_path / f"{place:05}.jpg" for place in range(50_000)]
    chosen = [paths[place] for place in random.Random(0).sample(range(50_000), 25)]
    for path in chosen:
        path.write_bytes(path.name.encode())
    items = choose_images(paths, tmp_path, 25, seed=0)
    assert [int(item.name[:5]) for item in items[:6]] == [25247, 49673, 27562, 2653, 16968, 33506]
    assert [int(item.name[:5]) for item in items[-2:]] == [39446, 9631]


def test_a_limit_above_the_number_takes_all_in_order(image_folder):
    paths = find_images(image_folder)
    assert [item.path for item in choose_images(paths, image_folder, 99, seed=0)] == paths


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_a_usage_error(image_folder, limit):
    with pytest.raises(UsageError, match=f"--limit .* got {limit}"):
        choose_images(find_images(image_folder), image_folder, limit, seed=0)


def test_a_folder_without_images_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no images"):
        find_images(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        find_images(tmp_path / "nowhere")


def test_broken_images_are_skipped_and_named(image_folder):
    whole = (image_folder / "class0/image0.png").read_bytes()
    (image_folder / "class0/image0.png").write_bytes(whole[: len(whole) // 2])
    (image_folder / "class1/image1.png").write_text("not an image")
    items = choose_images(find_images(image_folder), image_folder, None, seed=0)
    prepared = ImageShard(items).prepare(load_model(parse_model("test_vit", random_weights=True)), Protocol.PAPER)
    assert len(prepared.names) == len(prepared.inputs) == 4
    assert {name for name, _ in prepared.skipped} == {"class0/image0.png", "class1/image1.png"}
    assert all(str(image_folder) not in reason for _, reason in prepared.skipped)


def test_shards_cover_the_choice_without_overlap(image_folder):
    items = choose_images(find_images(image_folder), image_folder, None, seed=0)
    assert [item for shard in image_shards(items, 4) for item in shard.items] == list(items)
    assert [len(shard.items) for shard in image_shards(items, 4)] == [4, 2]


def test_images_of_a_folder_belong_together_only_if_asked_for(image_folder):
    paths = find_images(image_folder)
    alone = image_shards(choose_images(paths, image_folder, None, 0), 6)
    together = image_shards(choose_images(paths, image_folder, None, 0, by_folder=True), 6)
    assert all(shard.groups == {} for shard in alone)
    assert {name: group for shard in together for name, group in shard.groups.items()} == {
        f"class{place % 2}/image{place}.png": f"class{place % 2}" for place in range(6)
    }
    assert [shard.identity for shard in together] == [shard.identity for shard in alone]
