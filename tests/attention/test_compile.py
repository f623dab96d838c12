"""Each variant compiles into one graph.

In an interpreter of its own: here shapes are checked by wrapped functions, which torch cannot look through.
"""

import subprocess
import sys

SCRIPT = """
import torch
from attnaudit.attention import VARIANTS

torch.set_num_threads(1)
cases = [("softmax", {}), ("symmetric", {}), ("scaled", {}), ("scaled", {"form": "learned", "tokens": 6}),
         ("symmetric", {"temperature": 2.0}), ("rpc", {"sparse": "random"}),
         ("scaled", {"form": "exact"}), ("rpc", {}), ("rpc", {"preset": "admm", "asymmetric": True}),
         ("primal", {"rank": 3}), ("primal", {"rank": 3, "data_dependent": False})]
for name, options in cases:
    torch._dynamo.reset()
    layer = VARIANTS[name].module(12, 3, qkv_bias=True, **options).double().eval()
    x = torch.randn(2, 6, 12, dtype=torch.float64, requires_grad=True)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    (expected,) = torch.autograd.grad(layer(x).square().sum(), x)
    (found,) = torch.autograd.grad(compiled(x).square().sum(), x)
    assert torch.allclose(found, expected, atol=1e-12), name
    causal = name != "primal" or not layer.data_dependent
    if causal:
        compiled(x, is_causal=True)
    print(name, options)
"""


def test_every_variant_compiles_into_one_graph():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == 11
