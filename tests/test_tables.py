from itembank.tables import Column, all_of, is_numeric, least_width, plural, table_lines, upright_lines, wrapped

NUMBERS = ("1", "-0.5", "+0.0714 to +0.0714", "12/317", "2.6e-06", "<0.0001", "8.75 ± 2.92", "10 x", "-", "97 %")


def test_numbers_and_what_belongs_to_them_are_told_from_texts():
    assert [text for text in NUMBERS if not (is_numeric(text) and least_width(text, 4) == len(text))] == []
    assert not any(map(is_numeric, ("m1", "gpt-4", "4 v-optimal", "1.5, 2.5", "overall", "3B")))


def test_a_long_word_keeps_both_ends_and_text_breaks_between_words_where_no_number_is():
    assert wrapped("meta-llama/Llama-3.1-70B-Instruct", 13) == ["meta-l…struct"]
    assert wrapped("meta-llama/Llama-3.1-70B-Instruct", 12) == ["meta-l…truct"]
    assert wrapped("模型模型模型模型", 9) == ["模型…模型"]  # two places a letter
    assert wrapped("off by 23.5129 points here", 10) == ["off by", "23.5129", "points", "here"]


def table(*columns, width, least=()):
    return table_lines([Column(name, tuple(cells)) for name, *cells in columns], width, least)


def test_numbers_stand_right_and_text_left():
    lines = ["  name    n", " ───────────", "  a       5", "  bb     10"]
    assert table(("name", "a", "bb"), ("n", "5", "10"), width=80) == (lines, [])


def test_texts_that_would_be_cut_alike_are_broken_instead():
    names = ("executable_multiple", "executable_parallel_multiple", "executable_simple", "executable_multiple")
    lines, _ = table(("name", *names), ("n", "1", "2", "3", "4"), width=21)
    shown = [line.split()[0] for line in lines[2:]]
    twice = ["executable_mul", "tiple"]
    assert shown == [*twice, "executable_par", "allel_multiple", "executa…simple", *twice]


def test_headings_break_before_columns_give_way_and_those_in_the_stated_order():
    columns = (("name", "a", "b"), ("mean_error", "1.25", "2"), ("n_items", "5", "6"), ("other", "7", "8"))
    wide, nothing = table(*columns, width=60, least=("other", "n_items"))
    assert (wide[0], nothing) == ("  name   mean_error   n_items   other", [])
    broken, nothing = table(*columns, width=34, least=("other", "n_items"))
    assert nothing == []
    assert [line.split() for line in broken[:2]] == [["mean_"], ["name", "error", "n_items", "other"]]
    assert table(*columns, width=26, least=("other", "n_items"))[1] == ["other"]
    assert table(*columns, width=18, least=("other", "n_items"))[1] == ["other", "n_items"]
    alike = (*columns[:2], ("n_items", "5", "5"), columns[3])  # first what is the same in all rows
    assert table(*alike, width=26, least=("other", "n_items"))[1] == ["n_items"]


def test_where_nothing_more_can_give_way_and_of_one_record_lines_stand_upright():
    lines, left_out = table(("name", "a", "b"), ("first", "1.23456789", "2"), ("second", "1.5", "0.25"), width=18)
    first = ["  name     a", "  first    1.23456789", "  second   1.5"]
    assert lines == [*first, "", "  name     b", "  first    2", "  second   0.25"]
    assert left_out == []
    one = upright_lines([Column("name", ("a",)), Column("n", ("1",))], 80)
    assert table(("name", "a"), ("n", "1"), width=80)[0] == one
    long = upright_lines([Column("message", ("one two three four",))], 24)
    assert long == ["  message   one two", "            three four"]


def test_numbers_agree_with_their_nouns_and_verbs():
    assert [plural(n, "row", "have") for n in (1, 1000)] == ["1 row has", "1,000 rows have"]
    assert [plural(n, "log", "hold") for n in (1, 2)] == ["1 log holds", "2 logs hold"]
    assert [all_of(n, "item", "are") for n in (1, 1000)] == ["the only item is", "all 1,000 items are"]
