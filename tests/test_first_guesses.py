"""What people write first, who know other libraries and no page of ours: it works, or the error says what to write."""

from dataclasses import replace

import numpy as np
import pytest

import itembank as ib
import itembank_living
from tests.bank.banks import make_bank

pytestmark = pytest.mark.filterwarnings("ignore::itembank.errors.ItembankWarning")


class World:
    """A bank, the past models' responses, answers of two new models in tables and files, and results of verbs."""

    def __init__(self, folder):
        self.bank, self.folder = make_bank(with_extras=True), folder
        self.past = self.bank.responses
        rng = np.random.default_rng(0)
        answers = (rng.random((2, 30)) < 0.6).astype(float)
        new = ib.ResponseMatrix.create(answers, model_ids=["a", "b"], items=self.past.items)
        self.new, self.answers = new, answers
        self.a, self.b = (new.take(models=np.array([row])).to_polars() for row in range(2))
        for name, table in (("a", self.a), ("b", self.b), ("past", self.past.to_polars())):
            table.write_csv(folder / f"{name}.csv")
        self.bank.save(folder / "bank")
        self.selection = ib.select(self.bank, 12)
        self.estimates = ib.estimate(self.bank, self.a, self.selection)
        self.gate, self.plan = ib.gate(self.a, self.b), ib.plan(self.bank)

    def at(self, name):
        """Path of a file as people type it."""
        return str(self.folder / name)


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    return World(tmp_path_factory.mktemp("guesses"))


def is_shown(found):
    return "<html" in found.read_text()


def tells_of_accuracy(found):
    return found.accuracy.rows() == found.rows() and found.to_dict()["suits"] is found.suits


VARIATIONAL = ib.calibrations.Variational
WORKS = {
    "calibrate, a path": lambda w: ib.calibrate(w.at("past.csv")).n_models == 12,
    "calibrate, a table": lambda w: ib.calibrate(w.past.to_polars(), method=VARIATIONAL()).calibration.n_dims == 1,
    "check, a bank": lambda w: ib.check(w.at("bank")).to_dict()["n_items"] == 30,
    "check, new models": lambda w: tells_of_accuracy(ib.check(w.bank, w.at("a.csv"), only=["accuracy"], sizes=[12])),
    "info, a bank": lambda w: ib.info(w.at("bank")).facts["n_models"] == 12,
    "info.rows": lambda w: ib.info(w.bank).rows()[-1]["target"] == "overall",
    "info, responses": lambda w: ib.info(w.a).facts["mean_response"] == pytest.approx(w.answers[0].mean()),
    "select, n": lambda w: len(ib.select(w.bank, n=12)) == len(w.selection) == 12,
    "report, a bank": lambda w: is_shown(ib.report(w.bank, w.at("1.html"))),
    "report, a path": lambda w: is_shown(ib.report(w.at("bank"), w.at("2.html"))),
    "report, estimates": lambda w: is_shown(ib.report(w.estimates, w.at("3.html"))),
    "show, a plan": lambda w: len(ib.show(w.plan).charts) == 1,
    "gate, margin": lambda w: ib.gate(w.at("a.csv"), w.at("b.csv"), margin=0.03).spec.margin == 0.03,
    "gate.passed": lambda w: w.gate.passed is (w.gate.verdict == "pass"),
    "compare, files": lambda w: (
        ib.compare(w.at("a.csv"), w.at("b.csv")).rows()[0]["difference"] == pytest.approx(w.gate.difference)
    ),
    "select, a number": lambda w: ib.select(w.at("bank"), 12).item_ids == w.selection.item_ids,
    "estimate, a file": lambda w: ib.estimate(w.bank, w.at("a.csv"), w.selection).rows() == w.estimates.rows(),
    "plan, a path": lambda w: ib.plan(w.at("bank"), half_width=0.1).reached is not None,
    "len(estimates)": lambda w: len(w.estimates) == len(w.bank.targets.names),
    "estimates['overall']": lambda w: w.estimates["overall"].value.tolist() == w.estimates.value[:, -1].tolist(),
    "estimates['overall'].low": lambda w: w.estimates["overall"].low[0] < w.estimates["overall"].high[0],
    "estimates['a']": lambda w: (w.estimates["a"].value == w.estimates.value[0]).all(),
    "selection.to_polars": lambda w: w.selection.to_polars()["item_id"].to_list() == [*w.selection.item_ids],
    "responses.to_polars": lambda w: ib.read_responses(w.new.to_polars()).responses.tolist() == w.answers.tolist(),
    "responses.item_ids": lambda w: ib.read_responses(w.new.to_polars()).item_ids == w.new.item_ids,
    "estimates.to_polars": lambda w: w.estimates.to_polars().height == 4,
    "gate.to_polars": lambda w: w.gate.to_polars()["difference"][0] == w.gate.difference,
    "estimates.plot": lambda w: "overall" in w.estimates.plot().data[0].columns["name"],
    "bank.plot": lambda w: w.bank.plot().title == ib.show(w.bank).charts[0].title,
    "plan.plot": lambda w: len(w.plan.plot().data[0]) == len(w.plan.table),
    "gate.plot": lambda w: "margin" in w.gate.plot().title,
    "bank.models": lambda w: np.allclose(w.bank.models["overall"], w.bank.past_scores[:, -1], equal_nan=True),
    "bank.save": lambda w: ib.load_bank(w.bank.save(w.at("kept")) or w.at("kept")).ids == w.bank.ids,
}


@pytest.mark.parametrize("name", WORKS)
def test_it_works(name, w):
    assert WORKS[name](w)


ERRORS = {
    "bool(gate)": (lambda w: bool(w.gate), TypeError, r"ask gate\.passed"),
    "gate, a slip": (lambda w: ib.gate(w.a, w.b, margn=0.03), ValueError, "Did you mean 'margin'"),
    "select, n_items": (lambda w: ib.select(w.bank, n_items=12), TypeError, r"Write n=\.\.\."),
    "calibrate, n_dims": (
        lambda w: ib.calibrate(w.past, n_dims=2),
        TypeError,
        r"=ib\.calibrations\.Variational\('mirt', n_d",
    ),
    "calibrate, item_model": (lambda w: ib.calibrate(w.past, item_model="2pl"), TypeError, r"Variational\('2pl'\)"),
    "calibrate, model": (lambda w: ib.calibrate(w.past, model="2pl"), TypeError, r"Variational\('2pl'\)"),
    "read, repeats": (lambda w: ib.read_responses(w.a, repeats="count"), TypeError, r"ReadingSpec\(repeats=\.\.\.\)"),
    "calibrate, seed": (lambda w: ib.calibrate(w.past, seed=2), TypeError, r"Write rng=\.\.\.$"),
    "estimates, no such score": (lambda w: w.estimates["overal"], ValueError, "Did you mean 'overall'"),
    "for x in estimates": (lambda w: list(w.estimates), ValueError, r"take rows\(\)"),
    "selection.plot": (lambda w: w.selection.plot(), ValueError, "has no figure"),
    "responses.plot": (lambda w: w.past.plot(), ValueError, r"to_polars\(\) has its numbers"),
    "bank.select": (lambda w: w.bank.select(12), AttributeError, r"ib\.select\(bank, \.\.\.\)"),
    "estimates.estimate": (lambda w: w.estimates.estimate, AttributeError, r"Write result\['overall'\]"),
    "ItembankError": (lambda w: ib.ItembankError, AttributeError, r"Write ib\.errors\.ItembankError\.$"),
    "exceptions": (lambda w: ib.exceptions, AttributeError, r"Write ib\.errors\.ItembankError, the root"),
    "estimates.to_csv": (lambda w: w.estimates.to_csv("x.csv"), AttributeError, r"to_polars\(\)\.write_csv"),
    "estimates.save": (lambda w: w.estimates.save("x.html"), AttributeError, r"ib\.report\("),
    "selection.ids": (lambda w: w.selection.ids, AttributeError, "Write item_ids or model_ids"),
    "read_csv": (lambda w: ib.read_csv("x"), AttributeError, r"ib\.read_responses"),
    "load": (lambda w: ib.load("x"), AttributeError, r"ib\.load_bank"),
    "read_logs": (lambda w: ib.read_logs("x"), AttributeError, r"ib\.read_responses"),
    "load_selection": (lambda w: ib.load_selection("x"), AttributeError, r"ib\.Selection\.load\(path\)"),
    "Session": (lambda w: ib.Session(w.bank), AttributeError, r"with ib\.start_session\(path, bank\) as session\.$"),
    "estimates.ci": (lambda w: w.estimates.ci, AttributeError, r"Write result\['overall'\]"),
    "fit": (lambda w: ib.fit(w.past), AttributeError, r"ib\.calibrate"),
    "build_bank": (lambda w: ib.build_bank(w.past), AttributeError, r"ib\.calibrate"),
    "save_bank": (lambda w: ib.save_bank(w.bank, "x"), AttributeError, r"bank\.save\(path\)"),
    "audit": (lambda w: ib.audit(w.bank), AttributeError, r"ib\.check"),
    "score": (lambda w: ib.score(w.bank, w.a), AttributeError, r"ib\.estimate"),
    "run": (lambda w: ib.run(w.bank), AttributeError, "itembank run"),
    "add_models": (lambda w: ib.add_models(w.bank, w.a), AttributeError, r"Write itembank_living\.add_models"),
    "Bank.load": (lambda w: ib.Bank.load("bank"), AttributeError, r"Write ib\.load_bank\(path\)"),
    "plan(bank, 0.05)": (lambda w: ib.plan(w.bank, 0.05), TypeError, r"^plan\(bank, \.\.\.\).* half_width=.*got 2 "),
    "gate(a, b, 0.03)": (lambda w: ib.gate(w.a, w.b, 0.03), TypeError, r"^gate\(baseline, candidate, \.\.\.\) takes"),
    "precision": (lambda w: ib.plan(w.bank, precision=0.05), TypeError, r"Write half_width=\.\.\."),
    "start_session.ask": (
        lambda w: ib.start_session("x", w.bank).ask(),
        AttributeError,
        r"Write with ib\.start_session",
    ),
    "shape": (lambda w: w.past.shape, AttributeError, r"Write to_polars\(\)"),
    "selection.items": (lambda w: w.selection.items, AttributeError, "Write item_ids"),
    "bank.difficulty": (lambda w: w.bank.difficulty, AttributeError, "Write items, a table"),
    "list_ready": (lambda w: ib.list_ready(), AttributeError, r"Write itembank_living\.list_ready"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_the_error_says_what_to_write(name, w):
    call, kind, words = ERRORS[name]
    with pytest.raises(kind, match=words):
        call(w)


def test_pandas_tables_go_in_and_come_out(w):
    pandas = pytest.importorskip("pandas")
    past, a, b = (pandas.read_csv(w.folder / f"{name}.csv") for name in ("past", "a", "b"))
    assert ib.calibrate(past, ib.calibrations.Variational()).bank_id
    assert ib.estimate(w.bank, a, w.selection).rows() == w.estimates.rows()
    assert ib.gate(a, b).to_dict() == w.gate.to_dict()
    assert w.new.to_pandas()["response"].tolist() == w.answers.ravel().tolist()
    assert w.selection.to_pandas()["item_id"].tolist() == [*w.selection.item_ids]


def test_what_is_printed_says_what_it_is_and_what_comes_next(w):
    assert "12 past models x 30 items" in repr(w.bank)
    assert repr(w.bank).endswith("  Next: ib.select(bank, 30); ib.info(bank) says more")
    assert repr(w.past).startswith("Responses of 12 models x 30 items, right or wrong; 92.8 % are known")
    assert repr(w.selection).startswith(f"12 items of bank {w.bank.bank_id}, by drawn\nNext: run these")
    low, high = (100.0 * one[0] for one in w.estimates["overall"][2:])
    value = f"a: overall score {100.0 * w.estimates['overall'].value[0]:.1f} points"
    assert repr(w.estimates).startswith(f"{value} (95 % interval {low:.1f} to {high:.1f}), from 12 of 30 items")
    assert repr(w.gate).startswith(w.gate.sentence[:40])
    both = ib.estimate(w.bank, w.new, w.selection)
    assert repr(both).startswith("2 models: overall scores ")
    assert repr(both).count("/30") == 2
    assert all(note in repr(both).replace("\n", " ") for note in (both.notes[0].text, both.notes_in_words[0][:60]))


def test_a_bank_without_responses_tells_whom_it_may(w):
    told = ib.load_bank("bank:swebench-verified").models
    assert (told.columns, told.height) == (["model_id", "overall"], 100)
    hidden = itembank_living.without_responses(w.bank, selections=[w.selection]).models
    assert hidden["model_id"].null_count() == hidden.height


def test_no_name_breaks_a_line(w):
    hostile = ib.ResponseMatrix.create(w.answers[:1], model_ids=["x\n  overall 99.9\x1b[31m"], items=w.past.items)
    text = repr(ib.estimate(w.bank, hostile, w.selection))
    assert text.startswith(r"x\n overall 99.9\x1b[31m: overall score")
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith("overall 99.9") for line in text.splitlines())


def test_a_name_of_a_namespace_does_not_come_to_the_front_door():
    assert ib.banks.diff
    assert ib.diagnostics.outlook
    assert not {"diff", "outlook"} & set(vars(ib))


def test_a_session_takes_the_choices_of_its_spec_and_of_specs_within_by_name(w):
    with ib.start_session(
        w.at("run.jsonl"), w.bank, criterion="drawn", n_items=5, half_width=0.2, min_items=3
    ) as session:
        spec = ib.SessionSpec("drawn", budget=ib.Budget(n_items=5), stopping=ib.Stopping(half_width=0.2, min_items=3))
        assert session._pool.spec == replace(spec, errors="missing")
        assert repr(session) == "Session of model: 0 items answered; ask() gives the next"
        assert repr(session.estimate()).startswith("model: overall score ")
    assert repr(ib.show(w.estimates)).endswith("; .save('page.html') writes it")
    assert repr(w.bank.plot()).endswith("; .save('chart.png') writes it")
    with pytest.raises(ib.errors.ParameterError, match="called n_items, got max_items"):
        ib.prepare_sessions(w.bank, max_items=5)
    with pytest.raises(ib.errors.ParameterError, match="Did you mean 'half_width'"):
        ib.prepare_sessions(w.bank, halfwidth=0.1)
