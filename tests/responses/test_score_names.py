"""Tables name an only scenario and the overall score once."""

import math

from itembank.responses.score_names import without_only_scenario


def rows(**values):
    return [{"model_id": model, "target": name, "value": value} for model in "ab" for name, value in values.items()]


def test_an_only_scenario_whose_score_is_the_overall_one_has_no_row_of_its_own():
    kept = without_only_scenario(rows(quiz=0.5, overall=0.5 + 1e-12))
    assert [row["target"] for row in kept] == ["overall", "overall"]
    kept = without_only_scenario(rows(quiz=0.5, overall=0.5, custom=0.7))
    assert [row["target"] for row in kept] == ["overall", "custom"] * 2
    assert len(without_only_scenario(rows(quiz=math.nan, overall=math.nan))) == 2


def test_other_rows_stay():
    for table in (rows(quiz=0.5, overall=0.6), rows(one=0.5, two=0.5, overall=0.5), rows(quiz=0.5), rows(overall=0.5)):
        assert without_only_scenario(table) == table
