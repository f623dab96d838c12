"""A certificate can fail: queries, keys or values that are not the model's are never certified."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnaudit.capture import capture
from attnaudit.capture.collector import Collector
from attnaudit.errors import CaptureError
from tests.capture.ways import GOOD, INPUTS, OneLayer


class MultiHead(nn.Module):
    def __init__(self, need_weights, masked):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)
        self.need_weights, self.masked = need_weights, masked

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if self.masked else None
        return self.attention(x, x, x, need_weights=self.need_weights, attn_mask=mask)[0]


def in_windows(q, k, v):
    """Two windows, with a position term and a mask that are the same for all inputs."""
    b, h, n, d = q.shape
    q, k, v = (x[:, :, : n // 2 * 2].reshape(b, h, 2, n // 2, d).transpose(1, 2).flatten(0, 1) for x in (q, k, v))
    scores = (q * d**-0.5) @ k.mT + torch.linspace(0, 1, n // 2)
    scores = scores.view(b, 2, h, n // 2, n // 2) + torch.linspace(1, 0, n // 2)[:, None]
    out = scores.view(b * 2, h, n // 2, n // 2).softmax(-1) @ v
    out = out.view(b, 2, h, n // 2, d).transpose(1, 2).reshape(b, h, n // 2 * 2, d)
    return torch.cat([out, out[:, :, : n % 2]], dim=2)


PATHS = {attend.__name__: lambda attend=attend: OneLayer(attend) for attend in (*GOOD, in_windows)}
PATHS |= {
    f"multi-head, weights {weights}, masked {masked}": lambda weights=weights, masked=masked: MultiHead(weights, masked)
    for weights in (True, False)
    for masked in (True, False)
}


@pytest.mark.parametrize("part", ["query", "key", "value"])
@pytest.mark.parametrize("path", PATHS)
def test_noise_in_the_place_of_a_part_is_refused(path, part, monkeypatch):
    collect = Collector._collect

    def with_noise(self, layer, call):
        noise = torch.randn(getattr(call, part).shape, generator=torch.Generator().manual_seed(7))
        collect(self, layer, replace(call, **{part: noise}))

    assert capture(PATHS[path](), INPUTS).certificate.worst < 1e-5
    monkeypatch.setattr(Collector, "_collect", with_noise)
    with pytest.raises(CaptureError, match="replay differs"):
        capture(PATHS[path](), INPUTS)
