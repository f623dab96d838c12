"""Models with Primal-Attention made for tests."""

import pyarrow.compute as pc
import torch
from torch import nn

from attnaudit import attention
from attnaudit.records.architecture import Architecture
from attnaudit.sources.vision_transformer import build_vision_transformer

SMALL = {"image_size": 16, "patch_size": 4, "width": 32, "heads": 2, "depth": 3}
MEASURES = {"ksvd_left_overlap", "ksvd_right_overlap", "ksvd_dual_residual", "ksvd_objective"}


def vision_transformer(layer=2):
    """Three layers of attention, one of them Primal."""
    return build_vision_transformer(
        Architecture(**SMALL, attention="primal", attention_layers=(layer,), attention_options={"rank": 4}), seed=0
    )


def images(count=3, seed=1):
    return torch.randn(count, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


def at_kernel_svd(inputs):
    """Softmax attention, then a Primal layer whose weights are the kernel SVD for one input."""
    torch.manual_seed(0)
    model = nn.Sequential(attention.SoftmaxAttention(8, 1), attention.PrimalAttention(8, 1, rank=2)).double()
    layer = model[1]
    query, key, rows = (part[0, 0] for part in layer.kernel_factors(model[0](inputs).detach()))
    left, values, right = torch.linalg.svd(query @ rows.mT @ rows @ key.mT)
    with torch.no_grad():
        layer.weight_e[0] = rows @ key.mT @ right.mT[:, :2] / values[:2]
        layer.weight_r[0] = rows @ query.mT @ left[:, :2] / values[:2]
        layer.root_singular[0] = (inputs.shape[1] / values[:2]).sqrt()
    return model


class Calling(nn.Module):
    """Softmax attention, and Primal-Attention called with something."""

    def __init__(self, *args, times=1, **arguments):
        super().__init__()
        self.first = attention.SoftmaxAttention(8, 2)
        self.primal = attention.PrimalAttention(8, 2, rank=2, data_dependent=False)
        self.times, self.args, self.arguments = times, args, arguments

    def forward(self, x):
        x = self.first(x)
        for _ in range(self.times):
            x = self.primal(x, *self.args, **self.arguments)
        return x


def mask(hidden):
    """Of 17 tokens, the last ones hidden."""
    seen = torch.ones(1, 1, 1, 17, dtype=torch.bool)
    seen[..., 17 - hidden :] = False
    return seen


def of_primal(table):
    """The rows of Primal-Attention."""
    return table.filter(pc.equal(table["theory"], "ksvd-primal"))
