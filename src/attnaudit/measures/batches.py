"""Cut layers into batches of bounded size, always at the same places, so that the numbers are always the same.

The last digits of a result depend on the position of a head in its batch, because linear algebra libraries treat a
matrix differently if it is aligned differently in memory. So the cuts follow from the shape of the layer alone, never
from how much memory is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from attnaudit.capture.heads import Heads
from attnaudit.measures.pairs import too_many_pairs

#: What one float64 matrix of tokens x tokens per head may take, for all heads of a batch together. A GPU measures the
#: heads of 50 images of DeiT-Tiny at a time, as many as a unit has.
BATCH_BYTES = {"cpu": 64 * 2**20, "cuda": 640 * 2**20}
#: Columns of the Krylov space of a head whose matrices are not built, which then set its size.
_KRYLOV_COLUMNS = 384


def _on_gpu(heads: Heads) -> bool:
    return heads.key.is_cuda


def joined_layers(layers: Iterable[Heads], where: Callable[[Heads], bool] = _on_gpu) -> Iterator[Heads]:
    """On a GPU, neighbouring layers of one shape as one, because large batches are faster there; on a CPU as they are.

    Not where a layer has one head: the reference `other_head` then needs the layers apart.
    """
    waiting: list[Heads] = []
    for heads in layers:
        alone = not where(heads) or heads.per_input == 1
        if waiting and (alone or heads.shape_key != waiting[0].shape_key):
            yield _joined(waiting)
        if alone:
            yield heads
        else:
            waiting.append(heads)
    if waiting:
        yield _joined(waiting)


def of_first_inputs(heads: Heads, number: int) -> Heads:
    """The heads of the first inputs of a layer, with all windows of each."""
    names = list(dict.fromkeys(entry.input for entry in heads.index))[:number]
    return heads.part(0, sum(entry.input in names for entry in heads.index))


def _joined(waiting: list[Heads]) -> Heads:
    """All of them as one; the list is cleared, so that the parts can be freed."""
    joined = Heads.cat(waiting)
    waiting.clear()
    return joined


def with_following(layers: Iterable[Heads]) -> Iterator[tuple[Heads, Heads | None]]:
    """Each layer and the one after it, cyclically (None if there is one only); besides these only the first is held."""
    remaining = iter(layers)
    first = next(remaining, None)
    if first is None:
        return
    current = first
    for following in remaining:
        yield current, following
        current = following
    yield current, (None if current is first else first)


def batches(heads: Heads, following: Heads | None) -> Iterator[tuple[Heads, Heads | None]]:
    """The heads of a layer in order, a batch at a time, each with other heads whose values `other_head` may take.

    A batch has as many inputs (or windows) as fit, with all heads of each, because `other_head` takes the next head of
    the same input; the other heads are the same part of the `following` layer, for layers of one head. If not even one
    input fits, a batch is one head, and the other head is the next one of its input.
    """
    step = batch_size(heads)
    if step >= len(heads):
        yield heads, following
        return
    if following is not None and following.value.shape != heads.value.shape:
        following = None
    per_input = heads.per_input
    for start in range(0, len(heads), step):
        stop = min(start + step, len(heads))
        if step % per_input == 0:
            yield heads.part(start, stop), following and following.part(start, stop)
        else:
            first = start - start % per_input
            neighbour = first + (start + 1 - first) % per_input
            yield heads.part(start, stop), heads.part(neighbour, neighbour + 1)


def batch_size(heads: Heads) -> int:
    """How many of these heads are measured at a time."""
    per_input = heads.per_input
    fitting = BATCH_BYTES.get(heads.key.device.type, BATCH_BYTES["cpu"]) // matrix_bytes(heads)
    if fitting >= len(heads):
        return len(heads)
    return fitting // per_input * per_input or 1


def matrix_bytes(heads: Heads) -> int:
    """The size of a head's largest float64 matrix: tokens x tokens or queries x tokens, where these are built."""
    columns = _KRYLOV_COLUMNS if too_many_pairs(heads.key) else heads.tokens
    return max(heads.query.shape[1], heads.tokens) * columns * 8
