"""What a message advises is done on the very file that caused it, and the numbers are looked at.

A case is a file, the command, what its message must advise, and the answers once that is done. Expected answers are
written out, or counted by hand from the rows that made the file.
"""

import importlib
import inspect
import json
import re
import shlex
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest

from itembank.readers.read import read_responses

pytestmark = pytest.mark.filterwarnings("ignore:lost answers count", "ignore:.*as error.$")

ADVICE = re.compile(r"(?:add|say which): (--.*)")
END = re.compile(r", or |; if | or --|\.\s+[A-Z]|(?<!\.)\.$|$")


def advised(text):
    """Options of the first advice of a message, as they are to be typed."""
    found = next(match[1] for line in text.splitlines() if (match := ADVICE.search(line)))
    return shlex.split(found[: END.search(found).start()])


@dataclass
class Case:
    """A file whose first reading ends in a message."""

    name: str
    content: str | dict  # of a CSV file, or text of each file, or a table, by its name
    advice: str  # The options that the message must advise
    answers: dict  # model -> answers to items in the order of the file, None where missing
    words: str = ""  # Of the first command
    trials: int | dict = 0  # Of each answer, or model -> those of each, where they are not one each
    in_place_of: dict = field(default_factory=dict)  # What a person writes where the message has a blank to fill in
    is_read: bool = False  # Whether the file is read at once, with a warning that has the advice
    item_ids: tuple = ()


def crossed(names, *levels, response):
    """A long table of these columns, with all combinations of the levels of the first ones."""
    combos = [()]
    for some in levels:
        combos = [(*one, level) for one in combos for level in some]
    return names + "\n" + "".join(f"{','.join(map(str, one))},{response(*one)}\n" for one in combos)


def restarting(model, task, sample):
    return int((model, task, sample) in {("a", "gsm", 0), ("a", "arc", 1), ("b", "gsm", 0), ("b", "arc", 0)})


TASKS = crossed("model,task,sample_id,correct", "ab", ("gsm", "arc"), (0, 1), response=restarting)
TASK_ANSWERS = {"a": [1, 0, 0, 1], "b": [1, 0, 1, 0]}
TASK_IDS = ("gsm/0", "gsm/1", "arc/0", "arc/1")


def graded(model, item, replication, grader, rubric):
    return 0.1 * replication + 0.2 * (grader == "one") + 0.3 * (rubric == "mild") + 0.05 * (model == "b") + 0.01 * item


GRADINGS = crossed(
    "model,item,replication,grader_name,rubric_name,score",
    "ab",
    (0, 1, 2),
    (1, 2),
    ("one", "two"),
    ("strict", "mild"),
    response=graded,
)
LONG = "model_id,item_id,response\n"
CASES = (
    Case("ids restart", TASKS, "--column scenario=task --prefix-scenario", TASK_ANSWERS, item_ids=TASK_IDS),
    Case(
        "ids restart and were to be counted",
        TASKS,
        "--column scenario=task --prefix-scenario",
        TASK_ANSWERS,
        words="--repeats count",
        trials=1,
    ),
    Case(
        "the last of each was to be taken",
        TASKS,
        "--column scenario=task --prefix-scenario",
        TASK_ANSWERS,
        words="--repeats last",
    ),
    Case(
        "ids restart in JSON Lines",
        {"r.jsonl": pl.read_csv(TASKS.encode()).write_ndjson()},
        "--column scenario=task --prefix-scenario",
        TASK_ANSWERS,
        item_ids=TASK_IDS,
    ),
    Case(
        "ids restart within a scenario that is told",
        TASKS.replace("sample_id", "item_id,scenario").replace(",0,", ",0,s,").replace(",1,", ",1,s,"),
        "--column item_id=task+item_id",
        TASK_ANSWERS,
        item_ids=TASK_IDS,
    ),
    Case(
        "a scenario that was told does not make ids unique",
        TASKS,
        "--prefix-scenario",
        TASK_ANSWERS,
        words="--column scenario=task",
        item_ids=TASK_IDS,
    ),
    Case(
        "two models ran two tasks whose ids are the same numbers",
        "model,task,item,score\na,gsm,0,1\na,gsm,1,0\nb,arc,0,1\nb,arc,1,1\n",
        "--column scenario=task --prefix-scenario",
        {"a": [1, 0, None, None], "b": [None, None, 1, 1]},
        is_read=True,
    ),
    Case(
        "several metrics",
        crossed(
            "model,question,metric,value",
            "ab",
            (0, 1),
            ("acc", "f1"),
            response=lambda m, q, k: (m, q) in {("a", 0), ("b", 1)} if k == "acc" else 0.5,
        ),
        "--metric acc",
        {"a": [1, 0], "b": [0, 1]},
        words="--repeats mean",
    ),
    Case(
        "several metrics by another name",
        crossed(
            "model,item,criterion,score",
            "ab",
            (0, 1),
            ("style", "truth"),
            response=lambda m, q, k: 0.25 if k == "style" else 1,
        ),
        "--column metric=criterion --metric style",
        {"a": [0.25, 0.25], "b": [0.25, 0.25]},
    ),
    Case(
        "models with a metric of their own",
        "model_id,item_id,metric,response\na,x,acc,1\na,y,acc,0\nb,x,acc,0\nb,y,f1,0.5\n",
        "--metric acc",
        {"a": [1, 0], "b": [0, None]},
    ),
    Case(
        "two agents of one model",
        crossed(
            "agent,model,task_id,trial,reward", "xy", "m", (0, 1), (1, 2), response=lambda g, m, t, k: int(g == "x")
        ),
        "--column model_id=agent+model --repeats count",
        {"x + m": [1, 1], "y + m": [0, 0]},
        words="--column item_id=task_id --column response=reward",
        trials=2,
    ),
    Case(
        "two agents of one model in JSON",
        {
            f"{agent}{k}.json": json.dumps(
                {"agent_info": {"name": agent, "model": {"name": "m"}}, "task": "t", "trial": f"{agent}{k}", "r": r}
            )
            for agent, k, r in (("x", 1, 1), ("x", 2, 0), ("y", 1, 0), ("y", 2, 0))
        },
        "--column model_id=agent_info.name+model_id",
        {"x + m": [0.5], "y + m": [0]},
        words="--jq '{model_id: .agent_info.model.name, item_id: .task, epoch: .trial, response: .r}' --repeats count",
        trials=2,
    ),
    Case(
        "efforts of one model, which were to be averaged",
        crossed("model,effort,item,score", "ab", ("low", "high"), (0, 1), response=lambda m, e, i: int(e == "high")),
        "--column model_id=effort+model",
        {"low + a": [0, 0], "high + a": [1, 1], "low + b": [0, 0], "high + b": [1, 1]},
        words="--repeats mean",
    ),
    Case(
        "one model with each half of the items by another agent",
        "model_id,agent,item_id,response\nm,x,p,1\nm,x,q,0\nm,y,r,1\nm,y,s,1\n",
        "--column model_id=agent+model_id",
        {"x + m": [1, 0, None, None], "y + m": [None, None, 1, 1]},
        is_read=True,
    ),
    Case(
        "replications, graders and rubrics",
        GRADINGS,
        "--where grader_name=one --where rubric_name=strict --repeats mean",
        {"a": [0.35, 0.36, 0.37], "b": [0.4, 0.41, 0.42]},
        trials=2,
    ),
    Case(
        "replications, graders and rubrics were to be averaged",
        {"r.parquet": pl.read_csv(GRADINGS.encode())},
        "--where grader_name=one --where rubric_name=strict",
        {"a": [0.35, 0.36, 0.37], "b": [0.4, 0.41, 0.42]},
        words="--repeats mean",
        trials=2,
    ),
    Case(
        "each model with a judge of its own",
        "model_id,item_id,judge,response\na,x,one,1\na,y,one,0\nb,x,two,1\nb,y,two,1\n",
        "--where judge=one",
        {"a": [1, 0]},
    ),
    Case(
        "languages are items of their own",
        crossed("model,question,language,correct", "ab", "pq", ("en", "de"), response=lambda m, q, k: int(k == "en")),
        "--column item_id=question+language",
        {"a": [1, 0, 1, 0], "b": [1, 0, 1, 0]},
        item_ids=("p/en", "p/de", "q/en", "q/de"),
    ),
    Case(
        "a column by a name that says nothing",
        crossed("model,item,zz,correct", "ab", "pqr", "uv", response=lambda m, q, k: int(k == "u" or m == "b")),
        "--column epoch=zz --repeats count",
        {"a": [0.5] * 3, "b": [1.0] * 3},
        trials=2,
        words="--repeats count",
    ),
    Case(
        "attempts with a number",
        crossed("model,item,attempt,correct", "ab", "pq", (1, 2), response=lambda m, q, k: int(k == 1 or m == "a")),
        "--repeats count",
        {"a": [1, 1], "b": [0.5, 0.5]},
        trials=2,
    ),
    Case(
        "attempts of scores, which cannot be counted",
        crossed("model,item,run,score", "ab", "pq", (1, 2), response=lambda m, q, k: k / 4),
        "--repeats mean",
        {"a": [0.375] * 2, "b": [0.375] * 2},
        trials=2,
    ),
    Case(
        "equal rows that may be attempts",
        LONG + "a,x,1\na,x,1\na,y,0\na,y,0\n",
        "--repeats count",
        {"a": [1, 0]},
        trials=2,
        is_read=True,
    ),
    Case(
        "lists",
        {
            "r.parquet": pl.DataFrame(
                {"model_id": ["a", "a"], "item_id": ["x", "y"], "response": [[1, 0, 1, 1], [0, 0]]}
            )
        },
        "--repeats count",
        {"a": [0.75, 0]},
        trials={"a": [4, 2]},
    ),
    Case(
        "lists as text",
        LONG + 'a,x,"[1, 0, 1, 1]"\na,y,"[False, False]"\n',
        "--repeats count",
        {"a": [0.75, 0]},
        trials={"a": [4, 2]},
    ),
    Case(
        "lists of scores in JSON Lines",
        {"r.jsonl": '{"model_id": "a", "item_id": "x", "response": [0.25, 0.5]}\n'},
        "--repeats mean",
        {"a": [0.375]},
        trials=2,
    ),
    Case(
        "marks of 1 to 10",
        LONG + "a,x,10\na,y,1\nb,x,7\nb,y,3\n",
        "--max-response 10",
        {"a": [1, 0.1], "b": [0.7, 0.3]},
    ),
    Case("marks of 1 to 10 that reach 9", LONG + "a,x,9\na,y,1\n", "--max-response 10", {"a": [0.9, 0.1]}),
    Case(
        "marks of 1 to 5", LONG + "a,x,5\na,y,1\nb,x,3.5\nb,y,2\n", "--max-response 5", {"a": [1, 0.2], "b": [0.7, 0.4]}
    ),
    Case("marks of 0 to 2", "model_id,x,y\na,2,1\nb,0,1\n", "--max-response 2", {"a": [1, 0.5], "b": [0, 0.5]}),
    Case("percentages", LONG + "a,x,87.5\na,y,12\n", "--max-response 100", {"a": [0.875, 0.12]}),
    Case(
        "percentages beside shares",
        "model_id,item_id,scenario,response\na,1,gsm,1\na,2,bleu,87.5\na,3,bleu,12\nb,1,gsm,0\nb,2,bleu,0\nb,3,bleu,1\n",
        "--where scenario=bleu --max-response 100",
        {"a": [0.875, 0.12], "b": [0, 0.01]},
    ),
    Case("percentages below a half", LONG + "a,x,37.2\na,y,12\n", "--max-response 100", {"a": [0.372, 0.12]}),
    Case(
        "points up to 20",
        LONG + "a,x,20\na,y,5\n",
        "--max-response HIGHEST",
        {"a": [1, 0.25]},
        in_place_of={"HIGHEST": "20"},
    ),
    Case("missing is -1", LONG + "a,x,1\na,y,-1\nb,x,0\nb,y,1\n", "--missing -1", {"a": [1, None], "b": [0, 1]}),
    Case("missing is 99", "model_id,x,y\na,99,0\nb,1,1\n", "--missing 99", {"a": [None, 0], "b": [1, 1]}),
    Case(
        "missing is a number in JSON",
        {
            "r.json": json.dumps(
                [{"m": "a", "q": "x", "r": 1}, {"m": "a", "q": "y", "r": -9}, {"m": "b", "q": "y", "r": 0}]
            )
        },
        "--missing -9",
        {"a": [1, None], "b": [None, 0]},
        words="--jq '.[] | {model_id: .m, item_id: .q, response: .r}'",
    ),
    Case(
        "marks of 1 to 5, and 99 for missing",
        LONG + "a,x,5\na,y,99\nb,x,1\nb,y,4\n",
        "--missing 99 --max-response 5",
        {"a": [1, None], "b": [0.2, 0.8]},
    ),
    Case(
        "marks of 1 to 5, and 9 for missing",
        LONG + "a,x,5\na,y,9\na,z,3\nb,x,1\nb,y,4\nb,z,2\n",
        "--missing 9 --max-response 5",
        {"a": [1, None, 0.6], "b": [0.2, 0.8, 0.4]},
    ),
    Case(
        "marks of 1 to 10, and -1 for missing",
        LONG + "a,x,10\na,y,-1\nb,x,1\nb,y,4\n",
        "--missing -1 --max-response 10",
        {"a": [1, None], "b": [0.1, 0.4]},
    ),
    Case(
        "percentages, and 999 for missing",
        LONG + "a,x,87.5\na,y,999\nb,x,12\nb,y,100\n",
        "--missing 999 --max-response 100",
        {"a": [0.875, None], "b": [0.12, 1]},
    ),
    Case(
        "two codes for missing",
        LONG + "a,x,1\na,y,-9\nb,x,-1\nb,y,0\n",
        "--missing -9 --missing -1",
        {"a": [1, None], "b": [None, 0]},
    ),
    Case(
        "a code of surveys for missing",
        "model_id,x,y,z\na,7,0,1\nb,1,1,0\n",
        "--missing 7",
        {"a": [None, 0, 1], "b": [1, 1, 0]},
    ),
    Case(
        "missing is -9 among decimal commas",
        "model_id;item_id;response\na;x;0,875\na;y;-9,0\nb;x;0,5\nb;y;1,0\n",
        "--missing -9",
        {"a": [0.875, None], "b": [0.5, 1]},
    ),
    Case(
        "-1 among marks whose end was told",
        LONG + "a,x,10\na,y,-1\nb,x,1\nb,y,4\n",
        "--missing -1 --max-response 10",
        {"a": [1, None], "b": [0.1, 0.4]},
        words="--max-response 10",
    ),
    Case(
        "an end of marks that is too low",
        LONG + "a,x,10\na,y,5\n",
        "--max-response 10",
        {"a": [1, 0.5]},
        words="--max-response 5",
    ),
    Case("1 and 2, as R numbers the levels of a factor", LONG + "a,x,1\na,y,2\n", "--true-value 2", {"a": [0, 1]}),
    Case(
        "options of questions",
        "model,question_id,option,is_correct,chosen\n"
        "a,1,A,True,True\na,1,B,False,False\na,1,C,False,False\na,2,A,True,False\na,2,B,False,True\na,2,C,False,False\n",
        "--where chosen=True",
        {"a": [1, 0]},
    ),
    Case("1 and -1", LONG + "a,x,1\na,y,-1\n", "--true-value 1", {"a": [1, 0]}),
    Case(
        "a third word",
        LONG + "a,x,True\na,y,skip\nb,x,False\nb,y,True\n",
        "--missing skip",
        {"a": [1, None], "b": [0, 1]},
    ),
    Case(
        "words among numbers",
        "model_id,x,y,z\na,1,lazy,0\nb,no idea,0,1\n",
        "--missing lazy --missing 'no idea'",
        {"a": [1, None, 0], "b": [None, 0, 1]},
    ),
    Case(
        "a word among marks",
        LONG + "a,x,8\na,y,unclear\nb,y,4\n",
        "--missing unclear",
        {"a": [0.8, None], "b": [None, 0.4]},
        words="--max-response 10",
    ),
    Case("two words that nobody knows", LONG + "a,x,ok\na,y,bad\n", "--true-value bad", {"a": [0, 1]}),
    Case(
        "two words and a third, of which one was said to be right",
        LONG + "a,x,ok\na,y,bad\nb,x,bad\nb,y,none at all\n",
        "--missing VALUE",
        {"a": [1, 0], "b": [0, None]},
        words="--true-value ok",
        in_place_of={"VALUE": "none at all"},
    ),
    Case(
        "answers in place of verdicts",
        "model_id,item_id,response,verdict\na,x,A,1\na,y,B,0\na,z,C,1\n",
        "--column response=...",
        {"a": [1, 0, 1]},
        in_place_of={"response=...": "response=verdict"},
    ),
    Case(
        "answers of 0 and 1 beside verdicts",
        "model,question_id,response,label,is_correct\na,1,1,1,1\na,2,1,0,0\na,3,0,0,1\nb,1,0,1,0\nb,2,0,0,1\nb,3,1,0,0\n",
        "--column response=is_correct",
        {"a": [1, 0, 1], "b": [0, 1, 0]},
    ),
    Case(
        "a mean of all others",
        "model_id,x,y,z,Average\na,1,0,1,0.667\nb,0,0,1,0.333\n",
        "--drop-column Average",
        {"a": [1, 0, 1], "b": [0, 0, 1]},
    ),
    Case(
        "who won, of which one word alone is known",
        "model_id,item_id,response,points\na,x,model_a,1\na,y,model_b,0\na,z,tie,0.5\n",
        "--column response=...",
        {"a": [1, 0, 0.5]},
        in_place_of={"response=...": "response=points"},
    ),
    Case(
        "a text column in a wide table",
        "model_id,maker,notes,x,y\na,org,good,1,0\nb,lab,,0,1\n",
        "--drop-column maker --drop-column notes",
        {"a": [1, 0], "b": [0, 1]},
    ),
    Case(
        "a number that is no response in a wide table",
        "model_id,params,x,y\na,7,1,0\nb,70,0,1\n",
        "--drop-column params",
        {"a": [1, 0], "b": [0, 1]},
    ),
    Case(
        "categories of a wide table of items",
        "item_id,kind,a,b\nx,sums,1,0\ny,sums,0,1\nz,law,1,1\nw,law,0,0\n",
        "--column scenario=kind",
        {"a": [1, 0, 1, 0], "b": [0, 1, 1, 0]},
    ),
    Case(
        "row names that are items",
        '"","a","b"\n"x",1,0\n"y",0,0\n',
        "--as wide-items",
        {"a": [1, 0], "b": [0, 0]},
        is_read=True,
    ),
    Case(
        "columns by other names",
        "llm,wer,was_right\na,x,1\na,y,0\n",
        "--column item_id=wer --column response=was_right",
        {"a": [1, 0]},
        words="--column model_id=llm",
    ),
    Case(
        "ids of items that are called so, beside other columns",
        "ID,model,score,prompt,exception\nx,a,1,p,\ny,a,0,q,boom\nx,b,1,p,\n",
        "--column item_id=ID",
        {"a": [1, 0], "b": [1, None]},
    ),
    Case(
        "a status of errors",
        "model,item,score,status\na,x,1,ok\na,y,0,timeout\nb,x,0,ok\nb,y,1,ok\n",
        "--column error=status",
        {"a": [1, None], "b": [0, 1]},
        is_read=True,
    ),
    Case(
        "columns by other names, of which one is a usual one",
        "model,wer,correct\na,x,1\na,y,0\n",
        "--column item_id=wer",
        {"a": [1, 0]},
    ),
)


def made(case, folder):
    """Write the files of a case; return their paths."""
    files = {"r.csv": case.content} if isinstance(case.content, str) else case.content
    for name, content in files.items():
        if isinstance(content, pl.DataFrame):
            content.write_parquet(folder / name)
        else:
            (folder / name).write_text(content)
    return [folder / name for name in files]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_message_advises_gives_the_right_numbers(run, tmp_path, case):
    if "--jq" in case.words:
        pytest.importorskip("jq", reason="needs the extra jq")
    paths, output = made(case, tmp_path), tmp_path / "out.parquet"
    first = run("import", *paths, "-o", output, *shlex.split(case.words))
    assert first.code == (0 if case.is_read else 1), first.err
    options = advised(first.err)
    assert options == shlex.split(case.advice), first.err
    options = [case.in_place_of.get(one, one) for one in options]
    run.ok("import", *paths, "-o", output, *shlex.split(case.words), *options)
    matrix = read_responses(output)
    expected = np.array(list(case.answers.values()), dtype=np.float64)
    found = matrix.responses[[matrix.model_ids.index(name) for name in case.answers]]
    assert matrix.model_ids == list(case.answers)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    if case.trials:
        all_alike = [[case.trials] * matrix.n_items] * matrix.n_models
        assert matrix.n_trials.tolist() == (list(case.trials.values()) if isinstance(case.trials, dict) else all_alike)
    if case.item_ids:
        assert matrix.item_ids == list(case.item_ids)


TRIED_IN = (*("chosen_rows", "columns", "long_table", "matrix", "rows", "table", "telling_apart"),)
ELSEWHERE = {
    "--model-id": "test_table.py: a table of one model",
    "--models": "tables of their own, test_known.py",
    "--items": "tables of their own, test_known.py",
    "--jq": "nested JSON, test_import_jq.py",
    "--limit": "an option of lm_eval",
    "--spec": "empty = 'drop' in a file, test_table.py",
    "--errors": "what lost answers count as, wherever they are read",
    "--scenario": "goes with prefix_scenario, test_long_table.py",
    "--allow-mixed-prompts": "test_judges.py",
}


@pytest.mark.parametrize("name", TRIED_IN)
def test_every_option_that_a_reader_of_tables_advises_is_tried(name):
    source = inspect.getsource(importlib.import_module(f"itembank.readers.{name}"))
    named = set(re.findall(r"(?<![`-])--[a-z][a-z-]+", source))
    tried = {word for case in CASES for word in shlex.split(case.advice) if word.startswith("--")}
    assert named <= tried | set(ELSEWHERE), named - tried - set(ELSEWHERE)
