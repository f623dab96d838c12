from attnaudit.records.verdict import HeadScore, MeanEstimate, Score
from attnaudit.statistics.judged_heads import JudgedHeads


def scored(name, **heads):
    """A measure with the mean of every head, and whether that satisfies the claim or is above chance."""
    return Score(
        name,
        heads=tuple(
            HeadScore(0, int(head[1:]), MeanEstimate(mean, None), satisfies, above)
            for head, (mean, satisfies, above) in heads.items()
        ),
    )


ONE = scored("one", h0=(0.9, True, True), h1=(0.5, False, True), h2=(0.85, True, True), h3=(0.9, True, True))
OTHER = scored("other", h2=(0.95, True, True), h1=(0.9, True, True), h0=(0.3, False, False))


def numbers(heads):
    return [(own.head, own.score.mean) for own in heads]


def test_a_head_is_as_good_as_the_measure_that_says_least_of_it():
    for scores in ([ONE, OTHER], [OTHER, ONE]):
        found = JudgedHeads.of(scores)
        assert numbers(found.all) == [(0, 0.3), (1, 0.5), (2, 0.85)]
        assert numbers(found.satisfying) == [(2, 0.85)]
        assert numbers(found.above_chance) == [(1, 0.5), (2, 0.85)]
        assert str(found).startswith("1 of 3 heads satisfy it, 2 are above chance; the best is layer 0, head 2")


def test_without_a_measure_that_decides_no_head_is_judged():
    found = JudgedHeads.of([])
    assert (found.all, found.satisfying, found.above_chance, str(found)) == ([], [], [], "")
