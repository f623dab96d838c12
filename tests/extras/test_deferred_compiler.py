"""timm is imported without torch's compiler, and behaves as if it had it."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("timm")


def run(program):
    """What a new Python prints: here, other tests have imported everything."""
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


def test_a_timm_model_is_built_without_what_it_does_not_need():
    program = """
        import sys
        import torch
        from attnaudit.sources.model import load_model, parse_model
        from attnaudit.protocol import Protocol
        model = load_model(parse_model("vit_tiny_patch16_224", random_weights=True))
        model.module(torch.zeros(1, 3, 224, 224))
        model.preprocess(Protocol.EXACT)
        unneeded = ("torch._dynamo", "torch._inductor", "torch.distributed.tensor", "sympy", "transformers",
                    "matplotlib", "jinja2", "sklearn", "dask", "altair", "scipy.signal")
        print(*(name for name in unneeded if name in sys.modules))
    """
    assert run(program) == []


def test_what_computes_units_imports_neither_models_nor_pages():
    program = """
        import sys
        import attnaudit.audit.unit
        unneeded = ("timm", "transformers", "torchvision", "torch._dynamo", "matplotlib", "jinja2", "rich", "typer",
                    "attnaudit.report", "attnaudit.claims", "attnaudit.papers", "attnaudit.training", "attnaudit.cli")
        print(*(name for name in unneeded if name in sys.modules))
    """
    assert run(program) == []


def test_the_compiler_works_after_timm_was_imported_without_it():
    program = """
        import sys
        import torch
        from attnaudit.extras.deferred_compiler import deferred_compiler
        with deferred_compiler():
            marked = torch.compiler.disable(lambda x: x + 1)
            also = torch.compiler.disable(recursive=False)(lambda x: x + 2)
            from torch._dynamo.utils import is_compile_supported
        print("torch._dynamo" in sys.modules, marked(1), also(1))
        print(is_compile_supported("cpu") == sys.modules["torch._dynamo.utils"].is_compile_supported("cpu"))
        compiled = torch.compile(lambda x: marked(x * 2) * 3, backend="eager")
        print(compiled(torch.tensor(2)).item(), torch._dynamo.is_compiling(), marked(1))
        explained = torch._dynamo.explain(lambda x: marked(x * 2) * 3)(torch.tensor(2))
        print(explained.graph_break_count)
    """
    assert run(program) == ["False", "2", "3", "True", "15", "False", "2", "1"]


def test_anything_else_of_the_compiler_is_imported_at_once():
    program = """
        import sys
        import torch
        from attnaudit.extras.deferred_compiler import deferred_compiler
        with deferred_compiler():
            import torch._dynamo.config
            from torch._dynamo.utils import counters
        import torch._dynamo
        print(torch._dynamo.utils.counters is counters, torch._dynamo.config.verbose)
        with deferred_compiler():
            print(torch._dynamo is sys.modules["torch._dynamo"], hasattr(torch._dynamo, "optimize"))
    """
    assert run(program) == ["True", "False", "True", "True"]
