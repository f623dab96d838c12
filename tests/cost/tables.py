"""Made-up tables of costs whose answer is known."""

from attnaudit.cost.networks import networks
from attnaudit.records.cost import CostTable, NetworkCost, PassCost, PassTimes

SMALL = {"image_size": 32, "depth": 2, "classes": 3}
#: The published forms in a network of these tables.
FORMS = (
    "rpc, 4 iterations, first block",
    "rpc, 5 iterations, first block",
    "rpc, 6 iterations, first block",
    "rpc, 2 iterations, all blocks",
)
#: Ten ratios of time about 1, a per cent apart.
STEADY = (0.995, 1.005) * 5


def pass_cost(operations=1.0, memory=1.0, time=1.0, spread=STEADY, graph=None):
    """Multiples of what symmetric attention has; time is one, with a spread over repeats."""
    own, base = tuple(0.1 * time * each for each in spread), (0.1,) * len(spread)
    replayed = (
        None if graph is None else PassTimes(tuple(0.05 * graph * each for each in spread), (0.05,) * len(spread))
    )
    return PassCost(round(1e6 * operations), round(1e6 * memory), PassTimes(own, base), replayed)


def table(costs=None, sizes=("tiny",)):
    """Every variant of the sizes, with `costs` of inference and training by attention; all others cost the same."""
    found = [
        NetworkCost(size, name, own, 1_000_000, *(costs or {}).get(name, (pass_cost(), pass_cost())))
        for size in sizes
        for name, own in networks(size, **SMALL)
    ]
    return CostTable("one CPU thread", "2.0", "fp32", 1, 12.3, tuple(found))
