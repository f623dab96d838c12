"""A model that was run is afterwards what it was."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from attnaudit.training.preservation import preserved_state, unwrapped
from tests.training.networks import batch, network, train


def states(model):
    return {
        "modes": [module.training for module in model.modules()],
        "attributes": [{n: v for n, v in m.__dict__.items() if n[0] != "_"} for m in model.modules()],
        "names": [list(module.__dict__) for module in model.modules()],
        "buffers": [(id(b), b._version, b.tolist()) for b in model.buffers()],
        "gradients": [None if p.grad is None else (id(p.grad), p.grad.tolist()) for p in model.parameters()],
        "weights": [(id(p), p._version, p.tolist()) for p in model.parameters()],
        "python": random.getstate(),
        "numpy": [str(part) for part in np.random.get_state()],
        "torch": torch.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_nothing_of_a_model_in_training_changes(mode):
    model = network()
    train(model, 1)
    model.blocks[0].norm.eval()  # a part that is frozen
    before = states(model)
    with preserved_state(model, mode, seed=3), torch.no_grad():
        model(batch())
        model.blocks[1].left_behind = True
        random.random()
        np.random.rand()
        torch.rand(2)
    assert states(model) == before


def test_nothing_changes_when_the_run_fails():
    model = network()
    model.head = nn.Linear(1, 1)  # reached when everything else has run
    before = states(model)
    with pytest.raises(RuntimeError, match="shapes"), preserved_state(model, "train", seed=0):
        model(batch())
    assert states(model) == before


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_every_module_is_in_the_mode_asked_for(mode):
    model = network()
    model.blocks[0].eval()
    with preserved_state(model, mode, seed=0):
        assert all(module.training == (mode == "train") for module in model.modules())


def test_randomness_inside_comes_from_the_seed_alone():
    model, inputs = network(), batch()
    results = []
    for drawn in range(2):
        torch.rand(drawn)
        with preserved_state(model, "train", seed=3):
            results.append(model(inputs))
    assert torch.equal(*results)
    with preserved_state(model, "train", seed=4):
        assert not torch.equal(model(inputs), results[0])


def test_modules_that_fold_their_weights_are_not_asked_to():
    class Folding(nn.Linear):
        def train(self, mode=True):
            with torch.no_grad():
                self.weight.mul_(1 if mode else 2)
            return super().train(mode)

    model = nn.Sequential(Folding(2, 2))
    weight = model[0].weight.clone()
    with preserved_state(model, "eval", seed=0):
        pass
    assert torch.equal(model[0].weight, weight)


def test_a_graph_that_waits_for_its_backward_pass_still_works():
    inputs = batch()
    gradients = []
    for look in (False, True):
        model = network()
        loss = model(inputs).sum()
        if look:
            with preserved_state(model, "train", seed=0), torch.no_grad():
                model(batch(seed=2))
        loss.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_buffers_that_modules_share_stay_shared_inside():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2))
    model[1].running_mean = model[0].running_mean
    with preserved_state(model, "train", seed=0):
        assert model[1].running_mean is model[0].running_mean


def test_autocast_is_off_inside_and_on_again_outside():
    model = network()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with preserved_state(model, "eval", seed=0):
            assert model(batch()).dtype == torch.float32
        assert model(batch()).dtype == torch.bfloat16


def test_wrappers_are_taken_off():
    model = network()
    wrapped = nn.DataParallel(torch.compile(model, backend="eager"))
    assert unwrapped(wrapped) is model
    holder = nn.Module()
    holder.module = model  # no wrapper, a part that happens to have this name
    assert unwrapped(holder) is holder
