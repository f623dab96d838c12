"""What every attention module must do, whatever it computes."""

import copy
import inspect

import pytest
import torch

from attnaudit.attention import VARIANTS
from attnaudit.errors import AttnAuditError

BATCH, TOKENS, WIDTH, HEADS = 2, 7, 12, 3


def tokens(seed=0, batch=BATCH, count=TOKENS, width=WIDTH):
    return torch.randn(batch, count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def heads(seed=0, batch=BATCH, count=TOKENS, dim=4, number=HEADS, size=1.0):
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(3, batch, number, count, dim, generator=generator, dtype=torch.float64) * size
    return parts.requires_grad_().unbind(0)


def assert_same_with_gradients(ours, reference, parts, tolerance=1e-12):
    """Values and gradients of two functions of the same tensors agree, relative to the largest of each."""
    parts = [part.detach().requires_grad_() for part in parts]
    weight = torch.randn(ours(*parts).shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    for left, right in zip(
        _with_gradients(ours, parts, weight), _with_gradients(reference, parts, weight), strict=True
    ):
        assert (left - right).abs().max() <= tolerance * max(1.0, right.abs().max().item())


def _with_gradients(function, parts, weight):
    output = function(*parts)
    gradients = torch.autograd.grad((output * weight).sum(), parts, allow_unused=True)
    return [output, *(gradient for gradient in gradients if gradient is not None)]


def all_forms(seen):
    """A boolean mask, and the ways libraries write it for adding to scores."""
    added = torch.zeros(seen.shape, dtype=torch.float64)
    return [seen, *(added.masked_fill(~seen, low) for low in (-torch.inf, torch.finfo(added.dtype).min, -1e9, -1e4))]


class AttentionTestCase:
    """Subclass, set `name` and the `options` of the module; `causal_options` where a causal layer needs others."""

    name = ""
    options: dict = {}
    causal_options: dict = {}
    mixes_tokens = True
    takes_any_mask = True
    narrow = 6

    def build(self, width=WIDTH, **options):
        torch.manual_seed(0)
        arguments = {"num_heads": HEADS, "qkv_bias": True, **self.options, **options}
        module = VARIANTS[self.name].module(width, **arguments).double()
        with torch.no_grad():
            for parameter in module.parameters():  # zero-initialised ones would hide what they do
                parameter.add_(0.05 * torch.randn_like(parameter))
        return module.eval()

    def test_takes_the_arguments_of_timm(self):
        theirs = inspect.signature(pytest.importorskip("timm.layers").Attention).parameters
        options = {
            name: argument.default for name, argument in theirs.items() if argument.default is not argument.empty
        }
        module = self.build(**{**options, "num_heads": HEADS})
        assert module(tokens()).shape == (BATCH, TOKENS, WIDTH)
        assert list(inspect.signature(type(module).forward).parameters) == ["self", "x", "attn_mask", "is_causal"]

    def test_norms_gate_and_widths_of_timm(self):
        module = self.build(qk_norm=True, scale_norm=True, gated=True, dim_out=5, norm_layer=torch.nn.LayerNorm)
        assert module(tokens()).shape == (BATCH, TOKENS, 5)

    def test_gradients_are_right(self):
        module = self.build(width=self.narrow)  # every entry of every derivative is computed: few are enough
        x = tokens(count=self.options.get("tokens", 4), width=self.narrow).requires_grad_()
        assert torch.autograd.gradcheck(module, (x,))
        parameters = dict(module.named_parameters())

        def of_parameters(*values):
            return torch.func.functional_call(module, dict(zip(parameters, values, strict=True)), (x.detach(),))

        assert torch.autograd.gradcheck(of_parameters, tuple(p.detach().requires_grad_() for p in parameters.values()))

    def test_inputs_of_a_batch_do_not_meet(self):
        module, x = self.build(), tokens()
        torch.testing.assert_close(module(x)[:1], module(x[:1]), rtol=0, atol=1e-13)

    def test_a_causal_layer_leaks_nothing(self):
        module, x = self.build(**self.causal_options), tokens()
        before = module(x, is_causal=True)
        for place in range(1, TOKENS):
            changed = x.clone()
            changed[:, place:] += 10 * torch.randn_like(x[:, place:])
            torch.testing.assert_close(
                module(changed, is_causal=True)[:, :place], before[:, :place], rtol=0, atol=1e-12
            )
        assert not torch.allclose(module(changed, is_causal=True)[:, -1], before[:, -1])

    def test_padding_does_not_count(self):
        module = self.build()
        x = tokens()
        seen = torch.ones(BATCH, 1, 1, TOKENS, dtype=torch.bool)
        seen[..., -2:] = False
        changed = x.clone()
        changed[:, -2:] = 50 * torch.randn_like(x[:, -2:])
        for mask in all_forms(seen):
            before, after = module(x, mask), module(changed, mask)
            torch.testing.assert_close(before[:, :-2], after[:, :-2], rtol=0, atol=1e-12)
            if "tokens" not in self.options:
                torch.testing.assert_close(before[:, :-2], module(x[:, :-2]), rtol=0, atol=1e-12)
        assert torch.allclose(module(x)[:, :-2], module(changed)[:, :-2]) != self.mixes_tokens

    def test_a_causal_mask_of_any_form_leaks_nothing(self):
        if not self.takes_any_mask:
            return
        module, x = self.build(), tokens()
        changed = x.clone()
        changed[:, 4:] += 10 * torch.randn_like(x[:, 4:])
        seen = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
        for mask in (*all_forms(seen), *all_forms(seen.expand(BATCH, HEADS, -1, -1))):
            before = module(x, mask)
            torch.testing.assert_close(before, module(x, is_causal=True), rtol=0, atol=1e-12)
            torch.testing.assert_close(module(changed, mask)[:, :4], before[:, :4], rtol=0, atol=1e-12)

    def test_state_dict_round_trip(self):
        module, other, x = self.build(), self.build(), tokens()
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        other.load_state_dict(module.state_dict())
        assert torch.equal(module(x), other(x))

    def test_a_copy_after_a_pass_is_the_same(self):
        module, x = self.build(), tokens()
        before = module(x)
        assert torch.equal(copy.deepcopy(module)(x), before)

    def test_autocast_stays_close_and_trains(self):
        module = self.build().float().train()
        x = tokens().float().requires_grad_()
        with torch.no_grad():
            torch.manual_seed(0)
            exact = module(x)
        torch.manual_seed(0)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = module(x)
        low.float().square().sum().backward()
        assert x.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in module.parameters() if p.grad is not None)
        assert (low - exact).abs().max() < 0.05 * max(1, exact.abs().max())

    def test_runs_in_every_precision(self):
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            output = self.build().to(dtype)(tokens().to(dtype))
            assert output.dtype == dtype
            assert output.isfinite().all()

    @pytest.mark.parametrize("kind", ["attn_drop", "proj_drop"])
    def test_dropout_acts_in_training_only(self, kind):
        module, x = self.build(**{kind: 0.5}), tokens()
        assert torch.equal(module(x), module(x))
        module.train()
        assert torch.equal(module(x), module(x)) == (kind == "attn_drop" and not self.takes_any_mask)

    def test_a_width_that_does_not_split_is_an_error(self):
        with pytest.raises(AttnAuditError, match="dim=13 and num_heads=3"):
            VARIANTS[self.name].module(13, HEADS, **self.options)
