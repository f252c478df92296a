"""Every kind of page in a real browser: `make test-browser`."""

import csv

import pytest

from itembank.pages.blocks import Chart, Data
from itembank.pages.render import Page
from tests.browser.conftest import Watched
from tests.browser.made_pages import PAGES, PAYLOADS

pytestmark = pytest.mark.browser

PHONE, DESKTOP = 390, 1200
SERIOUS = {"serious", "critical"}


def unfold(page):
    for fold in page.locator("details").all():
        fold.evaluate("one => { one.open = true }")


@pytest.fixture(params=PAGES)
def name(request):
    return request.param


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_opens_without_an_error_or_a_request(open_page, name, width, dark):
    opened = open_page(name, width=width, dark=dark)
    page = opened.page
    assert page.evaluate("document.documentElement.dataset.ready") == "yes"
    assert opened.said == []
    assert opened.requests == []
    assert page.evaluate("window.hit") is None
    # nothing but tables and pictures may be wider than the screen, and these scroll by themselves
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_draws_every_chart_and_shows_strangers_names_as_they_are(open_page, name):
    page = open_page(name).page
    unfold(page)
    page.wait_for_timeout(300)
    charts = page.locator(".picture")
    assert page.locator(".picture.drawn svg, .picture.drawn canvas").count() == charts.count()
    for chart in charts.all():
        assert len(chart.get_attribute("aria-label")) > 20
        assert chart.bounding_box()["height"] > 40
    assert page.locator("main img, main iframe, main object, main embed").count() == 0
    assert page.locator("script").count() == page.locator("body > script").count()
    text = page.locator("body").inner_text()
    assert any(payload in text for payload in PAYLOADS)
    assert not page.locator("a[href]:not([href^='#'])").count()
    assert page.evaluate("window.hit") is None


def test_a_chart_that_cannot_be_drawn_is_named_and_takes_no_other_with_it(chromium, tmp_path):
    data = Data("things", {"id": ["a", "b"], "value": [1.0, 2.0]})
    good = {"mark": "bar", "encoding": {"x": {"field": "id", "type": "nominal"}, "y": {"field": "value"}}}
    bad = {**good, "transform": [{"calculate": "a b", "as": "c"}]}
    charts = tuple(
        Chart(f"The {name} one", spec, (data,), f"Two bars of the {name} chart, from 1 to 2.")
        for name, spec in (("first", good), ("bad", bad), ("last", good))
    )
    path = Page("Title", "Kind", charts).save(tmp_path / "page.html")
    context = chromium.new_context(viewport={"width": DESKTOP, "height": 900})
    opened = Watched(context.new_page(), path)
    page = opened.page
    assert page.locator(".picture.drawn svg").count() == 2
    said = page.locator(".caution").all_inner_texts()
    assert len(said) == 1
    assert said[0].startswith("This chart could not be drawn (")
    assert said[0].endswith("): The bad one")
    page.get_by_role("button", name="Dark", exact=True).click()  # drawn again, and said once
    page.wait_for_timeout(300)
    assert (page.locator(".picture.drawn svg").count(), page.locator(".caution").count()) == (2, 1)
    assert sum(one.startswith("error: ") for one in opened.said) == 1
    context.close()


def test_has_no_serious_fault_for_who_cannot_see_it(open_page, name):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed: make test-browser")
    for dark in (False, True):
        found = axe.Axe().run(open_page(name, dark=dark).page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in SERIOUS]
        assert serious == []


def test_refuses_scripts_and_requests_that_the_page_does_not_have(open_page, name):
    opened = open_page(name)
    page = opened.page
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.hit = 1";
        document.body.append(script);
        const picture = document.createElement("img");
        picture.src = "https://example.org/beacon.png";
        document.body.append(picture);
        const holder = document.createElement("div");
        holder.innerHTML = "<img src=x onerror='window.hit = 2'>";
        document.body.append(holder);
    }""")
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert opened.refused == len(opened.requests) > 0  # Chromium tells of requests that the policy stopped
    assert any("Content Security Policy" in one for one in opened.said)
    assert page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'refused')") == "refused"


def test_prints(open_page, name, tmp_path):
    opened = open_page(name, dark=True)
    before, written = opened.page.locator(".picture.drawn").count(), opened.page.pdf()
    assert written.startswith(b"%PDF")
    assert len(written) > 5_000
    assert opened.page.locator(".picture.drawn").count() == before
    assert opened.said == []


def long_table(page):
    return page.locator(".table:has(input[type=search])").first


def cells(table, column):
    return table.locator(f"tbody tr td:nth-child({column})").all_inner_texts()


def test_a_question_leads_to_its_text_and_answers_in_any_order(open_page):
    table = open_page("one-model", width=PHONE).page.locator(".table:has(.entry)")
    assert table.locator(".entry:visible").count() == 0
    for _ in range(2):
        link = table.locator("td.id a").first
        name = link.inner_text()
        link.click()
        assert table.locator(".entry:visible h3").all_inner_texts() == [name]
        assert "What is " in table.locator(".entry:visible").inner_text()
        table.locator("th button").first.click()  # sorted by name, rows are written anew


def test_sorts_searches_and_turns_pages(open_page):
    table = long_table(open_page("bank").page)
    head = table.locator("th.number").first
    column = 1 + head.evaluate("one => [...one.parentNode.children].indexOf(one)")
    as_numbers = lambda: [float(text.split()[0].replace(",", "").replace("−", "-")) for text in cells(table, column)]  # noqa: E731
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    down = as_numbers()
    assert down == sorted(down, reverse=True)
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    up = as_numbers()
    assert up == sorted(up)
    assert up[0] < down[0]
    first = cells(table, 1)
    table.get_by_label("Next rows").click()
    assert not set(first) & set(cells(table, 1))
    table.get_by_label("Previous rows").click()
    assert cells(table, 1) == first
    table.locator("input[type=search]").fill("onload=window.hit=1> 5")
    found = cells(table, 1)
    assert found
    assert all("onload=window.hit=1> 5" in one for one in found)
    table.locator("input[type=search]").fill("there is no such thing")
    assert cells(table, 1) == []
    assert "No row fits" in table.locator(".rest").inner_text()


def test_a_menu_chooses_rows(open_page):
    table = open_page("bank").page.locator(".table:has(select)").first
    menu = table.locator("select").first
    menu.select_option(index=1)
    chosen = menu.locator("option").nth(1).inner_text()
    values = {row.inner_text() for row in table.locator("tbody tr").all()}
    assert values
    assert all(chosen in one for one in values)


def test_a_download_holds_every_row_and_no_formula(open_page, tmp_path):
    page = open_page("bank").page
    table = long_table(page)
    with page.expect_download() as waiting:
        table.get_by_text("Download CSV").click()
    waiting.value.save_as(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    n_rows = int(table.locator(".rest").inner_text().split(" of ")[1].rstrip(".").replace(",", ""))
    assert len(rows) == n_rows + 1
    texts = [one for row in rows[1:] for one in row if not _is_number(one)]
    assert any(one.startswith("'=cmd|") for one in texts)
    assert not any(one.startswith(("=", "+", "@", "-")) for one in texts)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_marking_a_part_of_a_chart_leaves_its_rows(open_page):
    page = open_page("bank").page
    whole = long_table(page).locator(".rest").inner_text()
    brushed = page.locator(".picture:has(.brush_brush), .picture:has(.brush_brush_bg)").first
    brushed.scroll_into_view_if_needed()
    box = brushed.locator("svg").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"], steps=8)
    page.mouse.up()
    page.wait_for_function(
        "text => [...document.querySelectorAll('.rest')].some(one => one.innerText.includes('that fit'))", arg=whole
    )


def test_the_button_changes_light_to_dark_and_charts_follow(open_page):
    page = open_page("bank").page
    paper = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    light = paper()
    page.get_by_role("button", name="Dark", exact=True).click()
    page.wait_for_timeout(300)
    assert paper() != light
    assert page.get_by_role("button", name="Light", exact=True).is_visible()
    assert page.locator(".picture.drawn").count() == page.locator(".picture").count()


def test_reads_without_scripts(chromium, written):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written("bank").as_uri())
    text = page.locator("body").inner_text()
    context.close()
    assert "Charts need JavaScript" in text
    assert PAYLOADS[0] in text
    assert len(text) > 500


def test_rows_are_cards_on_a_phone_and_no_column_is_lost(open_page, name):
    page = open_page(name, width=PHONE).page
    unfold(page)
    too_wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
    assert page.locator(".scroll").evaluate_all(too_wide) == []
    for table in page.locator(".scroll table").all():
        heads = table.locator("th").evaluate_all("all => all.map(one => one.textContent.trim())")
        row = table.locator("tbody tr").first
        assert row.locator("td").evaluate_all("all => all.map(one => one.dataset.label.trim())") == heads
        assert all(cell.bounding_box()["width"] > 40 for cell in row.locator("td").all())
        tops = row.locator("td").evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        ends = [at for at, head in enumerate(heads[:-1]) if head.endswith("rom") and heads[at + 1] in {"to", "To"}]
        assert all(tops[at] == tops[at + 1] for at in ends)


def test_copies_a_picture_with_its_title(open_page):
    page = open_page("pass-at-k", dark=True).page
    page.evaluate("""() => {
        navigator.clipboard.write = async ([one]) => {
            const picture = await createImageBitmap(await one.getType("image/png"));
            window.copied = [one.types, picture.width, picture.height];
        };
    }""")
    page.get_by_role("button", name="Copy picture").first.click()
    page.wait_for_function("() => [...document.querySelectorAll('button')].some(one => one.textContent === 'Copied')")
    types, width, height = page.evaluate("window.copied")
    box = page.locator(".picture svg").first.bounding_box()
    assert types == ["image/png"]
    assert width >= 2 * box["width"]
    assert height > 2 * box["height"]  # the title is above it


def test_a_picture_is_downloaded_where_the_clipboard_is_refused(open_page, tmp_path):
    page = open_page("one-model").page
    page.evaluate("() => { navigator.clipboard.write = () => Promise.reject(new Error('refused')); }")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Copy picture").first.click()
    waiting.value.save_as(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
