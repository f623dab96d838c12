"""What a theory or a reference returns, checked before anything is computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.errors import ShapeError, UsageError
from attnaudit.kernel.prediction import Prediction


def check_prediction(theory: str, found: Any, heads: Heads) -> None:
    """Check that a theory, which may be the user's own, predicts values for these heads.

    Raises:
        UsageError: it returned something else than a prediction.
        ShapeError: its tensors do not have the shapes of the heads.
    """
    if not isinstance(found, Prediction):
        raise UsageError(f"The theory {theory!r} must return a Prediction, got {type(found).__name__}.")
    owner, count = f"theory {theory!r}", len(heads)
    check_values(owner, found.values, heads)
    _check_tensor(owner, "log_scale", found.log_scale, [(count,)])
    if found.outputs is not None:
        _check_tensor(owner, "outputs", found.outputs, [tuple(heads.output.shape)])
    if len(found.problems) != count:
        raise ShapeError(
            f"The theory {theory!r} must return problems for {count} heads, None for those without, got "
            f"{len(found.problems)}."
        )


def check_values(owner: str, found: Any, heads: Heads) -> None:
    """Check that `owner`, as in "theory 'mine'", returned values for these heads.

    Raises:
        UsageError: it returned no tensor.
        ShapeError: it does not have the shape of the values.
    """
    count, tokens, dim = heads.value.shape
    columns = {dim, min(tokens, dim)}  # a theory that runs out of tokens leaves out columns
    _check_tensor(owner, "values", found, [(count, tokens, own) for own in sorted(columns, reverse=True)])


def _check_tensor(owner: str, name: str, found: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    wanted = " or ".join(map(str, shapes))
    if not isinstance(found, Tensor):
        raise UsageError(f"The {owner} must return {name} as a torch tensor, got {type(found).__name__}.")
    if tuple(found.shape) not in shapes:
        raise ShapeError(f"The {owner} must return {name} of shape {wanted}, got {tuple(found.shape)}.")
