"""The words that the page begins with."""

INTRODUCTION = """
# What capture sees

`attnaudit.capture` takes any torch model. This page says how much of the attention of whole libraries it sees: one
small model with random weights for every model type, a batch of two inputs, one forward pass, for every
implementation of attention that the library offers (seed 0).

**Expected** is counted independently of capture, in a forward pass of its own, below torch's Python functions: every
call of a fused attention kernel, and every softmax whose result becomes a factor of a matrix product with something
that is not a parameter, whatever views, casts, slices and masks lie between. Routers, gates and class probabilities
are not. Names of modules and functions play no part.

Every expected call is one of these:

- **captured**: its heads are there, with a certificate;
- **refused**: capture names its module and says why;
- **listed as no attention**: its scores are no product of two activations, and capture lists the softmax of this
  module and shape among those that are no attention;
- **missed**: nothing is said of it;
- **in a run that crashes**: capture stops with an error.

The **share captured** leaves out what is no softmax attention over tokens: what is listed as no attention, attention
over channels or across inputs, linear attention, and weights that a linear layer or a convolution makes or whose keys
are parameters. Talking heads, sparse attention and other variants that are refused stay in.

A captured call is compared with the softmax that the model computed in that other pass. Padding is not captured, so it
is not compared. Weight matrices are drawn with variance 1/inputs, so that attention is far from uniform and a wrong
capture cannot agree by chance. Models that put tokens of several inputs into one row are measured with one input, since
such a row cannot be split into inputs. Models that take more than 60 s are left out.

On a GPU (`--device cuda`, H200, torch 2.11.0, timm 1.0.29, transformers 5.17.0, torchvision 0.26.0): 1,027 runs of
564 model types, 4,393 expected, 4,162 captured, 227 refused, 4 listed as no attention, none missed, none in runs that
crash; weights agree with the model's to 1.9e-04, and replays to 3.9e-05.

To repeat it, with `pip install 'attnaudit[coverage-models]'` for the last three libraries:

```sh
python -m benchmarks.coverage --cache FOLDER --seconds 60 --page docs/results/coverage.md
```
"""
