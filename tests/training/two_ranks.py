"""A training by two processes on this machine, as `torchrun` would start them."""

import multiprocessing
import os
from contextlib import suppress
from pathlib import Path

import torch

from attnaudit.training import DeviceSettings, read_data, read_recipe, train
from attnaudit.training.distributed import joined_processes


class Stopped(BaseException):
    """Stands for a signal that both processes get."""


def train_on_two_ranks(port, recipe_file, changes, data, out, *, stop=None):
    """Run it, to the end or until after step `stop`, and check that both processes ended well."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_rank, args=(r, port, recipe_file, changes, data, out, stop)) for r in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]


def _rank(rank, port, recipe_file, changes, data, out, stop):
    def progress(done, total, words):
        if done == stop:
            raise Stopped

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    with joined_processes("cpu") as (ranks, device), suppress(Stopped):
        recipe, settings = read_recipe(str(recipe_file), changes), DeviceSettings(device, save_after=0, ranks=ranks)
        train(recipe, read_data(recipe, data), out, device_settings=settings, progress=progress)
    assert gloo_threads() == []


def gloo_threads():
    """The threads of gloo in this process, by name, where the system tells them: after a training there are none."""
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").glob("*")]
    return [name for name in names if "gloo" in name]
