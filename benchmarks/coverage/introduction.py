"""The words that the page begins with."""

INTRODUCTION = """
# What capture sees

`attnaudit.capture` takes any torch model. This page says how much of the attention of whole libraries it sees: one
small model with random weights for every model type, a batch of two inputs, one forward pass, for every
implementation of attention that the library offers (seed 0).

**Expected** is counted independently of capture, in a forward pass of its own, below torch's Python functions: every
call of a fused attention kernel, and every softmax whose result becomes a factor of a matrix product with something
that is not a parameter, whatever views, casts, slices and masks lie between. Routers, gates and class probabilities
are not. Names of modules and functions play no part. **Captured** calls have a certificate; **refused** ones a
reason; **missed** ones have neither.

A captured call is compared with the softmax that the model computed in that other pass. Weight matrices are drawn
with variance 1/inputs, so that attention is far from uniform and a wrong capture cannot agree by chance.

To repeat it, with `pip install 'attnaudit[coverage-models]'` for the last three libraries:

```sh
python -m benchmarks.coverage --cache FOLDER --page docs/results/coverage.md
```
"""
