"""One step, by its formula: clipped gradients, the regulariser of Primal-Attention, the average of weights."""

import copy

import pytest
import torch
from torch.nn import functional

from attnaudit.attention import ksvd_loss
from attnaudit.errors import RunFolderError
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.training.batching import IGNORED
from attnaudit.training.distributed import DeviceSettings
from attnaudit.training.recipe_file import read_recipe
from attnaudit.training.trainer import Trainer, mean_cross_entropy

SMALL = (
    "model.depth=1", "model.width=24", "model.heads=2", "model.drop_path=0", "precision=fp32", "average=null",
    "optimiser.name=momentum", "optimiser.rate=0.1", "optimiser.weight_decay=0", "optimiser.warmup_epochs=0",
)  # fmt: skip


def new_trainer(*changes):
    recipe = read_recipe("vit-small-cifar", [*SMALL, *changes])
    return Trainer(build_vision_transformer(recipe.model, 0), recipe, 10, DeviceSettings())


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(4, 3, 32, 32, generator=generator), torch.tensor([0, 1, 2, 3])


def flat(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("clip", [0.01, 0.1])
def test_a_first_step_of_momentum_is_as_long_as_rate_times_clip(batch, clip):
    own = new_trainer(f"optimiser.clip={clip}")
    before = flat(own.model)
    own.step(0, *batch)
    assert float((flat(own.model) - before).norm()) == pytest.approx(0.1 * clip, rel=1e-3)


def test_without_a_clip_a_step_is_as_long_as_its_gradient(batch):
    own = new_trainer("optimiser.clip=null")
    model = copy.deepcopy(own.model)
    functional.cross_entropy(model(batch[0]), batch[1]).backward()
    expected = flat(model) - 0.1 * torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    own.step(0, *batch)
    torch.testing.assert_close(flat(own.model), expected)


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_the_regulariser_counts_by_its_weight(batch, weight):
    own = new_trainer("model.attention=primal", "model.attention_options={rank: 2}", f"ksvd_weight={weight}")
    model = copy.deepcopy(own.model)
    plain, regulariser = functional.cross_entropy(model(batch[0]), batch[1]), ksvd_loss(model)
    assert regulariser > 0.005
    torch.testing.assert_close(own.step(0, *batch), (plain + weight * regulariser).detach())


def test_the_average_takes_in_the_weights_after_each_step_by_the_decay_of_that_step(batch):
    own = new_trainer("average=0.15")
    expected = flat(own.model)
    for number, decay in ((0, 1 / 10), (1, 0.15), (2, 0.15)):  # β_t = min(β, (1 + t)/(10 + t))
        own.step(number, *batch)
        expected = decay * expected + (1 - decay) * flat(own.model)
        torch.testing.assert_close(flat(own.average), expected)


@pytest.mark.parametrize("shown", [1.0, 0.4, 0.01])
def test_the_loss_is_torchs_mean_to_the_last_bit(shown):
    generator = torch.Generator().manual_seed(0)
    logits, targets = torch.randn(3000, 11, generator=generator), torch.randint(11, (3000,), generator=generator)
    targets[torch.rand(3000, generator=generator) > shown] = IGNORED
    found, expected = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss, mean = mean_cross_entropy(found, targets), functional.cross_entropy(expected, targets)
    assert torch.equal(loss, mean)
    for own in (loss, mean):
        own.backward()
    assert torch.equal(found.grad, expected.grad)


def test_a_checkpoint_whose_optimiser_decays_other_weights_is_refused(batch):
    """As those of networks that segment were, whose class token and positions were decayed."""
    own = new_trainer("optimiser.weight_decay=0.1")
    own.step(0, *batch)
    state = own.state()
    undecayed, decayed = (group["params"] for group in state["optimiser"]["param_groups"])
    decayed.append(undecayed.pop())
    with pytest.raises(RunFolderError, match=r"checkpoint\.pt is of a version .* decays other weights: delete it"):
        own.restore(state)


def test_a_batch_without_a_class_has_no_loss_and_no_gradient():
    logits = torch.randn(8, 3, requires_grad=True)
    loss = mean_cross_entropy(logits, torch.full((8,), IGNORED))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not logits.grad.any()
