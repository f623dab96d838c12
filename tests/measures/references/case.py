"""What every reference must do."""

from dataclasses import replace

import torch

from attnaudit.capture import Heads
from attnaudit.measures import REFERENCES, MeasureInput, ReferenceInput
from attnaudit.measures.key_kernel import KeyKernel
from tests.heads import random_heads


def labelled(heads, inputs=2, layer=0):
    """The same heads, spread over inputs that are known."""
    per_input = len(heads) // inputs
    index = tuple(
        entry._replace(input=f"input-{place // per_input}", head=place % per_input, layer=layer)
        for place, entry in enumerate(heads.index)
    )
    source = torch.randn(inputs, heads.tokens, 5, generator=torch.Generator().manual_seed(layer), dtype=torch.float64)
    return replace(heads, index=index, source=source)


def reference_input(heads, seed=0, repeat=0, other=None):
    """What a reference is made from, with the prediction of kernel PCA."""
    return ReferenceInput(heads, MeasureInput.of(heads).prediction, other, seed, repeat)


def some(heads, places):
    return Heads(
        **{name: getattr(heads, name)[places] for name in ("query", "key", "value", "output", "scale")},
        index=tuple(heads.index[place] for place in places),
        source=heads.source[[places[0] * len(heads.source) // len(heads)]],
    )


class ReferenceTestCase:
    """Subclass and set `name`; `deterministic` if it draws nothing."""

    name: str
    deterministic = False

    def apply(self, heads, **more):
        return REFERENCES[self.name].apply(reference_input(heads, **more), KeyKernel(heads))

    def test_keeps_queries_and_keys_and_changes_values(self):
        heads = labelled(random_heads(0, heads=4))
        changed = self.apply(heads)
        assert torch.equal(changed.query, heads.query)
        assert torch.equal(changed.key, heads.key)
        assert not torch.allclose(changed.value, heads.value)

    def test_outputs_are_those_of_the_new_values(self):
        changed = self.apply(labelled(random_heads(1, heads=4)))
        torch.testing.assert_close(changed.output, changed.replayed())

    def test_the_same_seed_draws_the_same_values_and_another_does_not(self):
        heads = labelled(random_heads(2, heads=4))
        first = self.apply(heads).value
        assert torch.equal(self.apply(heads).value, first)
        for more in ({"seed": 1}, {"repeat": 1}):
            assert torch.equal(self.apply(heads, **more).value, first) == self.deterministic

    def test_a_head_gets_the_same_values_in_any_batch(self):
        heads = labelled(random_heads(3, heads=4))
        part = some(heads, [2, 3])
        whole = self.apply(heads).value[2:]
        torch.testing.assert_close(self.apply(part).value, whole, rtol=1e-12, atol=1e-12)
