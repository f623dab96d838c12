"""What capture costs: time and memory of a capture against the plain forward pass.

    python benchmarks/capture_cost.py [--repeats 5] [--src FOLDER]

One thread, random weights, the smallest time of several; each model in a process of its own, whose peak memory is read
after the plain passes and again after the captures. With `--src`, an attnaudit of another folder is measured, too, in
turn with this one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CASES = ("deit-tiny fused", "deit-tiny written out", "minilm sdpa", "minilm eager", "llama sdpa", "llama eager")


def build(case: str) -> tuple[Any, Any]:
    """A model in evaluation mode, and its inputs."""
    import torch

    torch.manual_seed(0)
    name, way = case.split(" ", 1)
    if name == "deit-tiny":
        import timm
        from timm.layers import set_fused_attn

        set_fused_attn(way == "fused")
        return timm.create_model("deit_tiny_patch16_224").eval(), torch.randn(8, 3, 224, 224)
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

    if name == "minilm":
        small = BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, vocab_size=1000
        )
        model = BertModel._from_config(small, attn_implementation=way)
        return model.eval(), {"input_ids": torch.randint(0, 1000, (8, 128))}
    config = LlamaConfig(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=10, num_attention_heads=9, num_key_value_heads=3,
        vocab_size=1000,
    )  # fmt: skip
    model = LlamaModel._from_config(config, attn_implementation=way)
    return model.eval(), {"input_ids": torch.randint(0, 1000, (2, 256))}


def measure(case: str, repeats: int) -> None:
    """Print seconds and peak memory of one model, plain and captured."""
    import torch

    from attnaudit.capture import capture

    torch.set_num_threads(1)
    model, inputs = build(case)
    given = inputs if isinstance(inputs, dict) else {"x": inputs}

    def plain() -> None:
        with torch.no_grad():
            model(**given)

    found = {}
    for name, function in (("plain", plain), ("capture", lambda: capture(model, inputs))):
        found[name] = best_of(repeats, function)
        found[f"{name} MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


def best_of(repeats: int, function: Callable[[], Any]) -> float:
    """The smallest processor time of several calls."""
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--src", type=Path, help="the src folder of another attnaudit")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        measure(options.case, options.repeats)
        return
    own = Path(__file__).resolve().parents[1] / "src"
    print(f"{'':24}{'plain':>10}{'capture':>10}{'ratio':>8}{'memory':>10}")
    for case in CASES:
        for label, source in (("", own), (" (other)", options.src)):
            if source is None:
                continue
            command = [sys.executable, __file__, "--case", case, "--repeats", str(options.repeats)]
            done = subprocess.run(
                command, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
            ratio = found["capture"] / found["plain"]
            more = found["capture MB"] - found["plain MB"]
            print(
                f"{case + label:30}{found['plain'] * 1e3:7.0f} ms{found['capture'] * 1e3:7.0f} ms{ratio:8.2f}"
                f"{more:7.0f} MB more",
                flush=True,
            )


if __name__ == "__main__":
    main()
