"""The tables of the atlas: what they count is what the audits have."""

from benchmarks.atlas_tables import claims, heads_of_theories, means, models, standing_out

from attnaudit.report.atlas.audits import telling_score
from attnaudit.report.atlas.page import AtlasPage
from tests.report.atlas.made_up import audit, audits, undecided


def lines(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def test_every_model_has_a_line():
    own = audits(9)
    assert [line[0] for line in lines(models(own))] == [each.entry.name for each in own]


def test_verdicts_of_a_claim_add_up_to_the_number_of_models():
    found = lines(claims(AtlasPage(audits(9), ())))
    assert all(sum(int(count or 0) for count in line[1:]) == 9 for line in found)


def test_means_name_how_many_models_they_are_of():
    page = AtlasPage([audit("a", "text", 1), audit("b", "text", 2), audit("c", "music", 3)], ())
    by_name = {line[0]: line[1:] for line in lines(means(page, page.fields, page.by_field))}
    assert [cell.split()[-1] for cell in by_name["keys-linear"]] == ["(2)", "(1)"]


def test_heads_that_stand_out_are_above_chance_and_in_order_of_what_is_certain():
    found = lines(standing_out(audits(9), 12))
    lows = [float(line[4].split("[")[1].split(",")[0]) for line in found]
    assert len(found) == 12
    assert lows == sorted(lows, reverse=True)
    assert not any(line[3] == "inputs-lowrank" for line in found)


def test_no_more_heads_are_above_chance_or_satisfy_a_theory_than_there_are():
    own = audits(9)
    found = {line[0]: list(map(int, line[1:])) for line in lines(heads_of_theories(AtlasPage(own, ())))}
    assert found["keys-linear"][:2] == [9, sum(each.ranking["keys-linear"].heads for each in own)]
    assert all(heads >= max(above, satisfied) for _, heads, above, satisfied in found.values())


def test_a_model_that_decides_nothing_is_left_out_of_counts_and_means_alike():
    own = [audit("a", "text", 1), undecided(audit("b", "text", 2), "keys-linear")]
    page = AtlasPage(own, ())
    counts = {line[0]: line[1:3] for line in lines(heads_of_theories(page))}
    assert counts["keys-linear"] == ["1", "6"]
    assert [cell.count for cell in page.by_field("keys-linear")] == [1]
    assert sum(cell.count for cell in page.by_size("keys-linear")) == 1
    assert sum(cell.count for cell in page.by_depth("keys-linear")) == 2, "the layers of one model"


def test_the_measure_stands_beside_a_score():
    own = audits(9)
    for line, each in zip(lines(models(own)), own, strict=True):
        score = telling_score(each.verdicts["kpca-values"])
        assert line[7] == ("" if score is None else f"{score.score} ({score.measure})")
