"""What the attention variants cost, in time and memory.

    python benchmarks/attention_cost.py [--device cpu|cuda] [--repeats 15]

cpu: RPC-Attention (4 iterations, width 192, 3 heads, float32, one thread), forward and backward of the layer, beside
the same layer written with tokens x tokens matrices (`explicit_attention.py`), and the floor of any version that is
built on fused attention: 4 calls of it. cuda: every variant in bfloat16, attention alone (no projections), beside one
fused softmax attention, plain and compiled, with each one's floor.

Versions take turns, so that a busy moment of the machine meets all of them; times are medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

import explicit_attention as explicit
from attnaudit.attention import RPCAttention, functional
from attnaudit.cost.passes import peak_bytes
from attnaudit.numerics.masks import Mask

ITERATIONS = 4
Work = Callable[[], Tensor]


class ExplicitRPC(RPCAttention):
    """The same layer, its mathematics written out."""

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Materialise every matrix."""
        return explicit.rpc(parts["k"], parts["v"], iterations=self.rule.iterations, lam=self.rule.lam)


class Floor(RPCAttention):
    """The same layer with nothing but its calls of fused attention."""

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Attend as often, each time to the result of the last."""
        result = parts["k"]
        for _ in range(self.rule.iterations):
            result = F.scaled_dot_product_attention(result, result, parts["v"])
        return result


def trained(work: Work) -> None:
    """Forward and backward."""
    work().sum().backward()


def seconds(
    versions: Mapping[str, Work], repeats: int, wait: Callable[[], None] = lambda: None, queue: int = 1
) -> dict[str, float]:
    """Median time of forward and backward of each version, in turns; `queue` of them between two waits."""
    times: dict[str, list[float]] = {name: [] for name in versions}
    for turn in range(repeats + 2):
        for name, work in versions.items():
            wait()
            begin = time.perf_counter()
            for _ in range(queue):
                trained(work)
            wait()
            if turn >= 2:  # the first ones warm up, and compile
                times[name].append((time.perf_counter() - begin) / queue)
    return {name: statistics.median(values) for name, values in times.items()}


def on_cpu(repeats: int) -> None:
    torch.set_num_threads(1)
    for batch, tokens in ((8, 197), (1, 2048)):
        torch.manual_seed(0)
        x = torch.randn(batch, tokens, 192, requires_grad=True)
        layers = {"explicit": ExplicitRPC(192, 3), "attnaudit": RPCAttention(192, 3), "floor": Floor(192, 3)}
        versions: dict[str, Work] = {name: partial(layer, x) for name, layer in layers.items()}
        times = seconds(versions, repeats if tokens < 1000 else max(3, repeats // 5))
        memory = {name: peak_bytes(partial(trained, work), torch.device("cpu")) for name, work in versions.items()}
        print(f"RPC, {ITERATIONS} iterations, B={batch} N={tokens}, forward and backward of the layer")
        for name in versions:
            faster, share = times["explicit"] / times[name], memory[name] / memory["explicit"]
            spent = f"{times[name] * 1e3:9.1f} ms {memory[name] / 2**20:8.1f} MiB"
            print(f"  {name:<10}{spent}   {faster:5.2f}x as fast, {share:6.3f} of the memory")


def on_cuda(repeats: int) -> None:
    batch, heads, tokens, dim = 32, 12, 1024, 64
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(batch, heads, tokens, dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for _ in range(3)
    )
    matrix = torch.zeros(heads, tokens, tokens, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    alpha = torch.zeros((), device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(heads, dim, 20, device="cuda", dtype=torch.bfloat16, requires_grad=True)

    def calls(count: int) -> Tensor:
        result = key
        for _ in range(count):
            result = F.scaled_dot_product_attention(result, result, value)
        return result

    #: name, work, calls of fused attention that it cannot do without
    variants: list[tuple[str, Callable[..., Tensor], int]] = [
        ("softmax", lambda: functional.softmax(query, key, value), 1),
        ("symmetric", lambda: functional.symmetric(key, value), 1),
        ("scaled, alpha", lambda: functional.scaled(query, key, value, alpha=alpha), 2),
        ("scaled, learned", lambda: functional.scaled(query, key, value, matrix=matrix), 1),
        ("scaled, exact", lambda: functional.scaled(query, key, value), 2),
        *((f"rpc, {n} iterations", lambda n=n: functional.rpc(key, value, iterations=n), n) for n in (1, 2, 4, 6)),
        ("primal, rank 20", lambda: torch.cat(functional.primal(query, key, weight, weight), dim=-1), 0),
        ("explicit rpc, 4", lambda: explicit.rpc(key, value), ITERATIONS),
    ]
    versions: dict[str, Work] = {name: work for name, work, _ in variants}
    versions |= {f"{name} (compiled)": torch.compile(work) for name, work, _ in variants if name != "explicit rpc, 4"}
    versions |= {f"floor {count}": partial(calls, count) for count in (1, 2, 4, 6)}
    times = seconds(versions, repeats, torch.cuda.synchronize, queue=10)
    memory = {name: peak_bytes(partial(trained, work), torch.device("cuda")) for name, work in versions.items()}
    name = torch.cuda.get_device_name()
    print(f"{name}, bfloat16, B={batch} H={heads} N={tokens} d={dim}, attention alone, forward and backward")
    print(f"{'variant':<28}{'ms':>8}{'/ softmax':>11}{'/ floor':>9}{'MiB':>8}{'/ softmax':>11}")
    floors = {variant: count for variant, _, count in variants}
    for version, spent in times.items():
        count = floors.get(version.removesuffix(" (compiled)"), 0)
        floor = f"{spent / times[f'floor {count}']:9.2f}" if count else f"{'':>9}"
        held = f"{memory[version] / 2**20:8.0f}{memory[version] / memory['softmax']:11.2f}"
        print(f"{version:<28}{spent * 1e3:8.3f}{spent / times['softmax']:11.2f}{floor}{held}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    on_cuda(options.repeats) if options.device == "cuda" else on_cpu(options.repeats)
