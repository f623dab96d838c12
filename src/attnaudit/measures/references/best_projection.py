"""The best projection of a layer's inputs: what no network with these inputs and keys can exceed.

Its values are not made head by head: they are fitted to one half of the inputs, in `measures.ceiling`.
"""

from attnaudit.measures.references.base import Reference, Role

BEST_PROJECTION = Reference(
    "best_projection",
    "the projection of the layer's inputs closest to the theory, fitted to the other half of the inputs",
    Role.CEILING,
    random=False,
    fitted=True,
)
BEST_PROJECTION_FITTED = Reference(
    "best_projection_fitted",
    "the same on the inputs it was fitted to: an upper end of what a network could reach",
    Role.CEILING,
    random=False,
    fitted=True,
)
