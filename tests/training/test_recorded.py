"""Steps that are recorded and replayed: the training that they would be without."""

import pytest
import torch
from safetensors.torch import load_file

from attnaudit.errors import AttnAuditError, UsageError
from attnaudit.sources.architecture import build
from attnaudit.training.loop import Place, train
from attnaudit.training.processes import Ranks
from attnaudit.training.randomness import seed_everything
from attnaudit.training.recipe import read_recipe
from attnaudit.training.recorded import RecordedStep
from attnaudit.training.trainee import Trainee

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CHANGES = ("model.depth=2", "batch=16", "precision=fp32", "average=0.9", "optimiser.warmup_epochs=0")


def weights_after(steps, recorded, *, resumed_at=None, changes=()):
    recipe = read_recipe("vit-small-cifar", [*CHANGES, *changes])

    def trainee():
        return Trainee(build(recipe.model, 0), recipe, 10, "cuda", Ranks(), recorded=recorded)

    own = trainee()
    for step in range(steps):
        if step == resumed_at:
            state, own = own.state(), trainee()
            own.restore(state)
        seed_everything("test", step)
        images = torch.randn(16, 3, 32, 32, device="cuda")
        targets = torch.randn(16, 10, device="cuda").softmax(dim=1)
        loss = own.step(step, images, targets)
    assert torch.isfinite(loss)
    return own


@needs_gpu
@pytest.mark.parametrize("changes", [(), ("model.attention=rpc",), ("model.attention=scaled",)])
def test_recorded_steps_train_the_model_that_plain_ones_train(changes):
    plain, recorded = (weights_after(12, recorded, changes=changes) for recorded in (False, True))
    for ours, theirs in ((recorded.model, plain.model), (recorded.average, plain.average)):
        for own, wanted in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(own, wanted, rtol=1e-3, atol=2e-4)  # twelve steps of rate 1e-3
    assert recorded.rate == plain.rate


@needs_gpu
def test_replayed_steps_follow_the_schedule_and_draw_new_random_numbers():
    torch.manual_seed(0)
    weight = torch.zeros(3, device="cuda", requires_grad=True)
    optimiser = torch.optim.AdamW([weight], lr=1.0, weight_decay=0.0, fused=True)
    seen = []

    def work(inputs, targets):
        optimiser.zero_grad(set_to_none=True)
        loss = (weight * inputs).sum() + torch.rand((), device="cuda")
        loss.backward()
        optimiser.step()
        return loss.detach()

    step = RecordedStep(work, optimiser)
    for number in range(8):
        before = weight.detach().clone()
        optimiser.param_groups[0]["lr"] = 1.0 / (number + 1)
        loss = float(step(torch.ones(3, device="cuda"), torch.zeros(3, device="cuda")))
        seen.append(loss - float(before.sum()))
        torch.testing.assert_close(before - weight.detach(), torch.full((3,), 1.0 / (number + 1), device="cuda"))
    assert len({round(draw, 5) for draw in seen}) == 8


@needs_gpu
def test_a_recorded_training_that_is_taken_up_again_is_the_same_training():
    whole, broken = weights_after(12, True), weights_after(12, True, resumed_at=7)
    for own, wanted in zip(broken.model.parameters(), whole.model.parameters(), strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-3, atol=2e-4)


@needs_gpu
def test_what_waits_for_the_host_cannot_be_recorded():
    weight = torch.zeros(3, device="cuda", requires_grad=True)
    step = RecordedStep(lambda inputs, targets: inputs.sum() * float(inputs.sum()), torch.optim.AdamW([weight]))
    batch = torch.ones(3, device="cuda")
    for _ in range(3):
        step(batch, batch)
    with pytest.raises(AttnAuditError, match=r"cannot be recorded .* without --graph"):
        step(batch, batch)


def test_steps_on_a_cpu_are_not_recorded():
    recipe = read_recipe("vit-small-cifar", CHANGES)
    with pytest.raises(UsageError, match="--graph records the steps of one process on a GPU"):
        Trainee(build(recipe.model, 0), recipe, 10, "cpu", Ranks(), recorded=True)


@needs_gpu
@pytest.mark.parametrize("change", ["monitor.images=0", "monitor.images=4"])
def test_a_whole_training_is_the_same_recorded_watched_or_neither(recipe_file, halves, tmp_path, change):
    """With drop path, augmentation, averaging and evaluations between the steps."""
    plain = train(read_recipe(str(recipe_file)), halves, tmp_path / "plain", place=Place("cuda"))
    recipe = read_recipe(str(recipe_file), [change])
    recorded = train(recipe, halves, tmp_path / "recorded", place=Place("cuda", recorded=True))
    for file in ("model.safetensors", "average.safetensors"):
        own, wanted = (load_file(run.path / file) for run in (recorded, plain))
        for name, tensor in own.items():
            torch.testing.assert_close(tensor, wanted[name], rtol=1e-3, atol=1e-3, msg=lambda m, n=name: f"{n}: {m}")
