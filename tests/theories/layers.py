"""A layer of attention over several inputs, with a truth that tests choose."""

from dataclasses import replace

import torch

from attnaudit.capture import HeadId, Heads

INPUTS, HEADS, TOKENS, WIDTH, DIM = 8, 3, 24, 10, 4
HALVES = {f"input-{place}": place % 2 for place in range(INPUTS)}


def layer(values=None, *, seed=0, causal=False, source=True, inputs=INPUTS):
    """Queries, keys and by default values are projections of the inputs, one for each head."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    given = draw(inputs, TOKENS, WIDTH)
    query, key, projected = ((given[:, None] @ draw(HEADS, WIDTH, DIM) / 3).flatten(0, 1) for _ in range(3))
    index = tuple(HeadId("model", f"input-{row}", 0, head) for row in range(inputs) for head in range(HEADS))
    scale = torch.full((len(key),), DIM**-0.5, dtype=torch.float64)
    heads = Heads(query, key, projected, torch.zeros_like(projected), scale, index, source=given if source else None)
    if causal:
        later = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
        bias = torch.zeros(TOKENS, TOKENS, dtype=torch.float64).masked_fill(later, -torch.inf)
        heads = replace(heads, bias=bias.expand(len(key), -1, -1))
    if values is not None:
        heads = replace(heads, value=values(heads))
    return replace(heads, output=heads.attended(heads.value))


def fitted(theory, heads, half=0):
    """The theory after a fit to the inputs of one half, and the inputs of the other half, input by input."""
    fitting = theory.fitting()
    rows = [heads.part(start, start + HEADS) for start in range(0, len(heads), HEADS)]
    for row in rows:
        if HALVES[row.index[0].input] == half:
            fitting.add(row)
    return fitting.finish(), [row for row in rows if HALVES[row.index[0].input] != half]
