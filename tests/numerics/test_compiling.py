"""A network that cannot be compiled is an error in one sentence, forward and backward; other errors stay."""

import pytest
import torch
from torch._inductor.exc import InductorError

from attnaudit.errors import AttnAuditError
from attnaudit.numerics.compiling import compile_errors


def no_compiler(graph, inputs):
    raise OSError("no C++ compiler\nand more")


def no_backward(graph, inputs):
    raise InductorError(OSError("no C++ compiler"), None)  # as torch's own compiler does


def test_a_compiler_that_fails_is_named_with_what_to_do():
    compiled = torch.compile(torch.nn.Linear(2, 2), backend=no_compiler)
    expected = r"^The network cannot be compiled here \(no C\+\+ compiler\): repeat the command without --compile\.$"
    with pytest.raises(AttnAuditError, match=expected), compile_errors():
        compiled(torch.ones(1, 2))


def test_one_that_fails_in_the_backward_pass_is_named_too():
    from torch._dynamo.backends.common import aot_autograd

    compiled = torch.compile(
        torch.nn.Linear(2, 2), backend=aot_autograd(fw_compiler=lambda graph, _: graph, bw_compiler=no_backward)
    )
    with pytest.raises(AttnAuditError, match="no C"), compile_errors():
        compiled(torch.ones(1, 2, requires_grad=True)).sum().backward()


def test_errors_of_the_network_itself_stay_as_they_are():
    with pytest.raises(RuntimeError, match="shapes") as caught, compile_errors():
        torch.nn.Linear(2, 2)(torch.ones(1, 3))
    assert not isinstance(caught.value, AttnAuditError)
