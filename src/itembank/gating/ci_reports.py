"""A verdict as continuous integration shows it: JUnit XML, an annotation of GitHub, and a summary in Markdown.

Names of models and scenarios are a stranger's: control characters are shown as escapes, of which XML 1.0 forbids most.
"""

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from itembank.errors import visible
from itembank.gating.results import Gate, points, signed
from itembank.tables import plural

LEVELS = {"pass": "notice", "fail": "error", "undecided": "warning"}
"""GitHub's commands by verdict."""
NO_VERDICT = "itembank gate: no verdict"


def junit_xml(found: Gate) -> str:
    """Return a verdict as JUnit XML: one test for the whole, and one a scenario, which informs and never fails.

    It is valid against the schema of Jenkins (`junit-10.xsd` of its xUnit plugin), which other systems read, too.
    """
    is_fail, is_undecided = found.verdict == "fail", found.verdict == "undecided"
    counts = {"tests": str(1 + len(found.scenarios)), "failures": str(int(is_fail)), "errors": "0"}
    root = ElementTree.Element("testsuites", counts)
    of_suite = {"name": "itembank gate", "skipped": str(int(is_undecided)), **counts}
    suite = ElementTree.SubElement(root, "testsuite", of_suite)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in found.rows()[0].items():
        if value not in {None, ""}:
            ElementTree.SubElement(properties, "property", name=name, value=visible(str(value)))
    candidate, baseline = visible(found.candidate_id), visible(found.baseline_id)
    name = f"{candidate} against {baseline}, margin {points(found.spec.margin)}"
    whole = ElementTree.SubElement(suite, "testcase", classname="itembank gate", name=name)
    words = "\n".join([*(f"{fact}: {value}" for fact, value in found.facts), *map(visible, found.notes)])
    if is_fail:
        ElementTree.SubElement(whole, "failure", type="fail", message=found.sentence).text = words
    elif is_undecided:
        ElementTree.SubElement(whole, "skipped", type="undecided", message=found.sentence).text = words
    else:
        ElementTree.SubElement(whole, "system-out").text = f"{found.sentence}\n{words}"
    for one in found.scenarios:
        of = {"classname": "itembank gate scenarios", "name": visible(one.scenario)}
        told = ElementTree.SubElement(suite, "testcase", of)
        ElementTree.SubElement(told, "system-out").text = (
            f"{signed(one.change)} points on {plural(one.n_items, 'item')}, from {100.0 * one.baseline:.1f} to "
            f"{100.0 * one.candidate:.1f}: {plural(one.right_to_wrong, 'answer')} fell, {one.wrong_to_right} rose"
        )
    return _document(root)


def junit_without_verdict(reason: str) -> str:
    """Return as JUnit XML that there is no verdict, and why: one test that ended in an error."""
    counts = {"tests": "1", "failures": "0", "errors": "1"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "itembank gate", "skipped": "0", **counts})
    whole = ElementTree.SubElement(suite, "testcase", classname="itembank gate", name="no verdict")
    lines = _lines(reason)
    ElementTree.SubElement(whole, "error", type="no verdict", message=lines[0]).text = "\n".join(lines)
    return _document(root)


def _document(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def github_annotation(found: Gate) -> str:
    """Return a verdict as a workflow command of GitHub, one line."""
    return _workflow_command(LEVELS[found.verdict], f"itembank gate: {visible(found.candidate_id)}", [found.sentence])


def annotation_without_verdict(reason: str) -> str:
    """Return as a workflow command of GitHub, one line, that there is no verdict, and why."""
    return _workflow_command("error", NO_VERDICT, _lines(reason))


def _workflow_command(level: str, title: str, lines: Sequence[str]) -> str:
    name = title.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{'%0A'.join(line.replace('%', '%25') for line in lines)}"


def _lines(text: str) -> list[str]:
    """Return the lines of a message, with what controls terminals as escapes."""
    return [visible(line) for line in text.splitlines()] or [""]


def step_summary(found: Gate) -> str:
    """Return a verdict as Markdown, for the summary of a job."""
    shown = found.by_change[:10]
    scenarios = [
        f"| {_plain(one.scenario)} | {one.n_items} | {100.0 * one.baseline:.1f} | {100.0 * one.candidate:.1f} | "
        f"{signed(one.change)} | {one.right_to_wrong} | {one.wrong_to_right} |"
        for one in shown
    ]
    cut = f", the {len(shown)} of {len(found.scenarios)} that changed most" if len(shown) < len(found.scenarios) else ""
    lines = [
        f"### itembank gate: {found.verdict}",
        "",
        _plain(found.sentence),
        "",
        *(f"{_plain(text)[:1].upper()}{_plain(text)[1:]}.\n" for text in found.notes),
        f"| {_plain(found.candidate_id)} | against {_plain(found.baseline_id)} |",
        "|---|---|",
        *(f"| {name} | {_plain(words)} |" for name, words in found.facts),
        "",
        f"| Scenario{cut} | Items | Baseline | Candidate | Change (points) | Fell | Rose |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *scenarios,
    ]
    return "\n".join([*lines, "", ""])


def summary_without_verdict(reason: str) -> str:
    """Return as Markdown, for the summary of a job, that there is no verdict, and why."""
    return "\n\n".join([f"### {NO_VERDICT}", *map(_plain, _lines(reason)), ""])


def _plain(text: str) -> str:
    """Escape all punctuation, as CommonMark allows (2.4), so that a text is no markup."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", visible(text))
