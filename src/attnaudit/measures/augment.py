"""The GPU program of `gpu_assignment`: one warp per matrix, its state in registers."""

import triton
import triton.language as tl


@triton.jit
def augment(costs, prices, row_of_memory, n, BLOCK: tl.constexpr):
    """Add the rows that have no column yet, each by a shortest augmenting path; `row_of_memory` is updated.

    An entry of a register tensor is read by summing the tensor with all others masked out.
    """
    matrix = costs + tl.program_id(0).to(tl.int64) * n * n
    here = tl.program_id(0) * n
    columns = tl.arange(0, BLOCK)
    inside = columns < n
    v = tl.load(prices + here + columns, mask=inside, other=0.0)
    row_of = tl.load(row_of_memory + here + columns, mask=inside, other=-2)
    for root in range(n):
        if tl.max((row_of == root).to(tl.int32), axis=0) == 0:
            distance = tl.full([BLOCK], float("inf"), tl.float64)
            parent = tl.full([BLOCK], -1, tl.int32)
            reached = columns >= n
            tip = root
            u = tl.sum(tl.zeros([BLOCK], tl.float64), axis=0)
            travelled = u
            sink = -1
            while sink < 0:
                row = tl.load(matrix + tip * n + columns, mask=inside, other=0.0)
                candidate = travelled + row - u - v
                closer = (candidate < distance) & (reached == 0)
                distance = tl.where(closer, candidate, distance)
                parent = tl.where(closer, tip, parent)
                travelled, column = tl.min(tl.where(reached, float("inf"), distance), axis=0, return_indices=True)
                at = columns == column
                owner = tl.sum(tl.where(at, row_of, 0), axis=0)
                if owner < 0:
                    sink = column
                else:
                    reached = reached | at
                    tip = owner
                    u = tl.load(matrix + tip * n + column) - tl.sum(tl.where(at, v, 0.0), axis=0)
            # Each reached column pays by how much it was nearer than the sink: reduced costs stay non-negative.
            v = tl.where(reached & inside, v - (travelled - distance), v)
            column = sink
            row = -1
            while row != root:
                row = tl.sum(tl.where(columns == column, parent, 0), axis=0)
                following = tl.sum(tl.where(row_of == row, columns, 0), axis=0)
                row_of = tl.where(columns == column, row, row_of)
                column = following
    tl.store(row_of_memory + here + columns, row_of, mask=inside)
