"""What the monitor of our own training looks at."""

from attnaudit.training.loop import train
from attnaudit.training.recipe_file import read_recipe


def test_a_monitor_that_gets_fewer_images_than_wanted_says_so(recipe_file, halves, tmp_path):
    lines = {}
    for wanted in (8, 24):
        told = lines[wanted] = []
        recipe = read_recipe(str(recipe_file), ["epochs=1", f"monitor.images={wanted}"])
        train(recipe, halves, tmp_path / str(wanted), tell=told.append)
    assert not [line for line in lines[8] if "there are no more" in line]
    assert [line for line in lines[24] if "there are no more" in line] == [
        f"The monitor looks at {have}, not at 24 {half} images: there are no more in a batch or in all."
        for have, half in (("8 train images", "train"), ("20 test images", "test"))
    ]
