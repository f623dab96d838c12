"""How near do values come to what kernel PCA predicts: trained, random and best projections of the same inputs.

    attnaudit audit deit_tiny_patch16_224 --limit 80 --out RUN
    python benchmarks/ceiling_table.py RUN

From the evidence of an audit with enough inputs for both ends of the ceiling (40 in each half): the overlap of span V
with the predicted span, by reference: the mean over heads, and the least, median and largest head. Prints Markdown.
"""

from __future__ import annotations

import argparse

import numpy as np

import attnaudit

ROWS = {
    "gaussian": "noise, anew for every input",
    "rotated": "the head's values, turned at random",
    "shuffled_tokens": "shuffled tokens",
    "random_projection": "**random projection of the inputs**",
    "other_head": "another head",
    "observed": "**trained**",
    "best_projection": "**best projection**, on inputs it was not fitted to",
    "best_projection_fitted": "the same, on the inputs it was fitted to",
    "planted": "planted",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--theory", default="kpca")
    arguments = parser.parse_args()
    run = attnaudit.open(arguments.run)
    columns = ("reference", "layer", "head", "value")
    table = run.rows.where(*columns, measure="value_subspace_overlap", theory=arguments.theory)
    heads = table.group_by(["reference", "layer", "head"]).aggregate([("value", "mean")])
    names, means = np.array(heads["reference"].to_pylist()), heads["value_mean"].to_numpy()
    print("| values | overlap, mean over heads | least / median / largest head |")
    print("| --- | --- | --- |")
    for reference, words in ROWS.items():
        own = means[names == reference]
        if len(own):
            print(f"| {words} | {own.mean():.4f} | {own.min():.3f} / {np.median(own):.3f} / {own.max():.3f} |")


if __name__ == "__main__":
    main()
