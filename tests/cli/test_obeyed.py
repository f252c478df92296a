"""What a message advises is done on the very file that caused it, and the numbers are looked at.

A case is a file, the command, what its message must advise, and the answers once that is done. Expected answers are
written out, or counted by hand from the rows that made the file.
"""

import importlib
import inspect
import json
import re
import shlex
from dataclasses import dataclass

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
    name: str
    content: str | dict  # of a CSV file, | between its lines, or text of each file, or a table, by its name
    advice: str  # The options that the message must advise
    answers: str  # Of each model, to items in the order of the file, - where missing
    words: str = ""  # Of the first command
    trials: int | list = 0  # Of each answer, or those of each model, where they are not one each
    in_place_of: tuple = ()  # What a person writes where the message has a blank to fill in: blank, word
    is_read: bool = False  # Whether the file is read at once, with a warning that has the advice
    item_ids: str = ""


def crossed(names, *levels, response):
    """A long table of these columns, with all combinations of the levels of the first ones."""
    combos = [()]
    for some in levels:
        combos = [(*one, level) for one in combos for level in some]
    return "|".join([names, *(f"{','.join(map(str, one))},{response(*one)}" for one in combos)])


def as_table(text):
    return pl.read_csv(text.replace("|", "\n").encode())


def restarting(model, task, sample):
    return int((model, task, sample) in {("a", "gsm", 0), ("a", "arc", 1), ("b", "gsm", 0), ("b", "arc", 0)})


def of_metric(model, question, metric):
    return (model, question) in {("a", 0), ("b", 1)} if metric == "acc" else 0.5


def graded(model, item, replication, grader, rubric):
    return 0.1 * replication + 0.2 * (grader == "one") + 0.3 * (rubric == "mild") + 0.05 * (model == "b") + 0.01 * item


def of_agent(name, k, right):
    about = {"name": name, "model": {"name": "m"}}
    return json.dumps({"agent_info": about, "task": "t", "trial": f"{name}{k}", "r": right})


GRADED = "model,item,replication,grader_name,rubric_name,score"
GRADINGS = crossed(GRADED, "ab", (0, 1, 2), (1, 2), ("one", "two"), ("strict", "mild"), response=graded)
ONE_GRADER = "--where grader_name=one --where rubric_name=strict"
TASKS = crossed("model,task,sample_id,correct", "ab", ("gsm", "arc"), (0, 1), response=restarting)
TASK_ANSWERS, TASK_IDS = "a: 1 0 0 1, b: 1 0 1 0", "gsm/0 gsm/1 arc/0 arc/1"
BY_TASK = "--column scenario=task --prefix-scenario"
TOLD = TASKS.replace("sample_id", "item_id,scenario").replace(",0,", ",0,s,").replace(",1,", ",1,s,")
METRICS = crossed("model,question,metric,value", "ab", (0, 1), ("acc", "f1"), response=of_metric)
CRITERIA = crossed(
    "model,item,criterion,score", "ab", (0, 1), ("style", "truth"), response=lambda m, q, k: 0.25 if k == "style" else 1
)
AGENTS = crossed("agent,model,task_id,trial,reward", "xy", "m", (0, 1), (1, 2), response=lambda g, *_: int(g == "x"))
AGENT_FILES = {
    f"{agent}{k}.json": of_agent(agent, k, r) for agent, k, r in (("x", 1, 1), ("x", 2, 0), ("y", 1, 0), ("y", 2, 0))
}
EFFORTS = crossed("model,effort,item,score", "ab", ("low", "high"), (0, 1), response=lambda m, e, i: int(e == "high"))
LANGUAGES = crossed(
    "model,question,language,correct", "ab", "pq", ("en", "de"), response=lambda m, q, k: int(k == "en")
)
UNKNOWN = crossed("model,item,zz,correct", "ab", "pqr", "uv", response=lambda m, q, k: int(k == "u" or m == "b"))
ATTEMPTS = crossed("model,item,attempt,correct", "ab", "pq", (1, 2), response=lambda m, q, k: int(k == 1 or m == "a"))
RUNS = crossed("model,item,run,score", "ab", "pq", (1, 2), response=lambda m, q, k: k / 4)
LISTS = pl.DataFrame({"model_id": ["a", "a"], "item_id": ["x", "y"], "response": [[1, 0, 1, 1], [0, 0]]})
NINES = [{"m": "a", "q": "x", "r": 1}, {"m": "a", "q": "y", "r": -9}, {"m": "b", "q": "y", "r": 0}]
OPTIONS = "model,question_id,option,is_correct,chosen|" + "|".join(
    f"a,{q},{letter},{letter == 'A'},{letter == chosen}" for q, chosen in ((1, "A"), (2, "B")) for letter in "ABC"
)
LONG = "model_id,item_id,response|"
CASES = (
    Case("ids restart", TASKS, BY_TASK, TASK_ANSWERS, item_ids=TASK_IDS),
    Case("ids restart and were to be counted", TASKS, BY_TASK, TASK_ANSWERS, "--repeats count", trials=1),
    Case("the last of each was to be taken", TASKS, BY_TASK, TASK_ANSWERS, "--repeats last"),
    Case("ids restart in JSON Lines", {"r.jsonl": as_table(TASKS).write_ndjson()}, BY_TASK, TASK_ANSWERS,
         item_ids=TASK_IDS),
    Case("ids restart within a scenario that is told", TOLD, "--column item_id=task+item_id", TASK_ANSWERS,
         item_ids=TASK_IDS),
    Case("a scenario that was told does not make ids unique", TASKS, "--prefix-scenario", TASK_ANSWERS,
         "--column scenario=task", item_ids=TASK_IDS),
    Case("two models ran two tasks whose ids are the same numbers",
         "model,task,item,score|a,gsm,0,1|a,gsm,1,0|b,arc,0,1|b,arc,1,1", BY_TASK, "a: 1 0 - -, b: - - 1 1",
         is_read=True),
    Case("several metrics", METRICS, "--metric acc", "a: 1 0, b: 0 1", "--repeats mean"),
    Case("several metrics by another name", CRITERIA, "--column metric=criterion --metric style",
         "a: 0.25 0.25, b: 0.25 0.25"),
    Case("models with a metric of their own",
         "model_id,item_id,metric,response|a,x,acc,1|a,y,acc,0|b,x,acc,0|b,y,f1,0.5", "--metric acc", "a: 1 0, b: 0 -"),
    Case("two agents of one model", AGENTS, "--column model_id=agent+model --repeats count", "x + m: 1 1, y + m: 0 0",
         "--column item_id=task_id --column response=reward", trials=2),
    Case("two agents of one model in JSON", AGENT_FILES, "--column model_id=agent_info.name+model_id",
         "x + m: 0.5, y + m: 0",
         "--jq '{model_id: .agent_info.model.name, item_id: .task, epoch: .trial, response: .r}' --repeats count",
         trials=2),
    Case("efforts of one model, which were to be averaged", EFFORTS, "--column model_id=effort+model",
         "low + a: 0 0, high + a: 1 1, low + b: 0 0, high + b: 1 1", "--repeats mean"),
    Case("one model with each half of the items by another agent",
         "model_id,agent,item_id,response|m,x,p,1|m,x,q,0|m,y,r,1|m,y,s,1", "--column model_id=agent+model_id",
         "x + m: 1 0 - -, y + m: - - 1 1", is_read=True),
    Case("replications, graders and rubrics", GRADINGS, f"{ONE_GRADER} --repeats mean",
         "a: 0.35 0.36 0.37, b: 0.4 0.41 0.42", trials=2),
    Case("replications, graders and rubrics were to be averaged", {"r.parquet": as_table(GRADINGS)}, ONE_GRADER,
         "a: 0.35 0.36 0.37, b: 0.4 0.41 0.42", "--repeats mean", trials=2),
    Case("each model with a judge of its own",
         "model_id,item_id,judge,response|a,x,one,1|a,y,one,0|b,x,two,1|b,y,two,1", "--where judge=one", "a: 1 0"),
    Case("languages are items of their own", LANGUAGES, "--column item_id=question+language", "a: 1 0 1 0, b: 1 0 1 0",
         item_ids="p/en p/de q/en q/de"),
    Case("a column by a name that says nothing", UNKNOWN, "--column epoch=zz --repeats count",
         "a: 0.5 0.5 0.5, b: 1 1 1", "--repeats count", trials=2),
    Case("attempts with a number", ATTEMPTS, "--repeats count", "a: 1 1, b: 0.5 0.5", trials=2),
    Case("attempts of scores, which cannot be counted", RUNS, "--repeats mean", "a: 0.375 0.375, b: 0.375 0.375",
         trials=2),
    Case("equal rows that may be attempts", LONG + "a,x,1|a,x,1|a,y,0|a,y,0", "--repeats count", "a: 1 0", trials=2,
         is_read=True),
    Case("lists", {"r.parquet": LISTS}, "--repeats count", "a: 0.75 0", trials=[[4, 2]]),
    Case("lists as text", LONG + 'a,x,"[1, 0, 1, 1]"|a,y,"[False, False]"', "--repeats count", "a: 0.75 0",
         trials=[[4, 2]]),
    Case("lists of scores in JSON Lines", {"r.jsonl": '{"model_id": "a", "item_id": "x", "response": [0.25, 0.5]}'},
         "--repeats mean", "a: 0.375", trials=2),
    Case("marks of 1 to 10", LONG + "a,x,10|a,y,1|b,x,7|b,y,3", "--max-response 10", "a: 1 0.1, b: 0.7 0.3"),
    Case("marks of 1 to 10 that reach 9", LONG + "a,x,9|a,y,1", "--max-response 10", "a: 0.9 0.1"),
    Case("marks of 1 to 5", LONG + "a,x,5|a,y,1|b,x,3.5|b,y,2", "--max-response 5", "a: 1 0.2, b: 0.7 0.4"),
    Case("marks of 0 to 2", "model_id,x,y|a,2,1|b,0,1", "--max-response 2", "a: 1 0.5, b: 0 0.5"),
    Case("percentages that end at 99", LONG + "a,x,99|a,y,0.3", "--max-response 100", "a: 0.99 0.003"),
    Case("percentages beside shares",
         "model_id,item_id,scenario,response|a,1,gsm,1|a,2,bleu,87.5|a,3,bleu,12|b,1,gsm,0|b,2,bleu,0|b,3,bleu,1",
         "--where scenario=bleu --max-response 100", "a: 0.875 0.12, b: 0 0.01"),
    Case("percentages below a half", LONG + "a,x,37.2|a,y,12", "--max-response 100", "a: 0.372 0.12"),
    Case("points up to 20", LONG + "a,x,20|a,y,5", "--max-response HIGHEST", "a: 1 0.25",
         in_place_of=("HIGHEST", "20")),
    Case("missing is -1", LONG + "a,x,1|a,y,-1|b,x,0|b,y,1", "--missing -1", "a: 1 -, b: 0 1"),
    Case("missing is 99", "model_id,x,y|a,99,0|b,1,1", "--missing 99", "a: - 0, b: 1 1"),
    Case("missing is a number in JSON", {"r.json": json.dumps(NINES)}, "--missing -9", "a: 1 -, b: - 0",
         "--jq '.[] | {model_id: .m, item_id: .q, response: .r}'"),
    Case("marks of 1 to 5, and 99 for missing", LONG + "a,x,5|a,y,99|b,x,1|b,y,4", "--missing 99 --max-response 5",
         "a: 1 -, b: 0.2 0.8"),
    Case("marks of 1 to 5, and 9 for missing", LONG + "a,x,5|a,y,9|a,z,3|b,x,1|b,y,4|b,z,2",
         "--missing 9 --max-response 5", "a: 1 - 0.6, b: 0.2 0.8 0.4"),
    Case("marks of 1 to 10, and -1 for missing", LONG + "a,x,10|a,y,-1|b,x,1|b,y,4", "--missing -1 --max-response 10",
         "a: 1 -, b: 0.1 0.4"),
    Case("percentages, and 999 for missing", LONG + "a,x,87.5|a,y,999|b,x,12|b,y,100",
         "--missing 999 --max-response 100", "a: 0.875 -, b: 0.12 1"),
    Case("two codes for missing", LONG + "a,x,1|a,y,-9|b,x,-1|b,y,0", "--missing -9 --missing -1", "a: 1 -, b: - 0"),
    Case("a code of surveys for missing", "model_id,x,y,z|a,7,0,1|b,1,1,0", "--missing 7", "a: - 0 1, b: 1 1 0"),
    Case("missing is -9 among decimal commas", "model_id;item_id;response|a;x;0,875|a;y;-9,0|b;x;0,5|b;y;1,0",
         "--missing -9", "a: 0.875 -, b: 0.5 1"),
    Case("-1 among marks whose end was told", LONG + "a,x,10|a,y,-1|b,x,1|b,y,4", "--missing -1 --max-response 10",
         "a: 1 -, b: 0.1 0.4", "--max-response 10"),
    Case("an end of marks that is too low", LONG + "a,x,10|a,y,5", "--max-response 10", "a: 1 0.5", "--max-response 5"),
    Case("1 and 2, as R numbers the levels of a factor", LONG + "a,x,1|a,y,2", "--true-value 2", "a: 0 1"),
    Case("options of questions", OPTIONS, "--where chosen=True", "a: 1 0"),
    Case("1 and -1", LONG + "a,x,1|a,y,-1", "--true-value 1", "a: 1 0"),
    Case("a third word", LONG + "a,x,True|a,y,skip|b,x,False|b,y,True", "--missing skip", "a: 1 -, b: 0 1"),
    Case("words among numbers", "model_id,x,y,z|a,1,lazy,0|b,no idea,0,1", "--missing lazy --missing 'no idea'",
         "a: 1 - 0, b: - 0 1"),
    Case("a word among marks", LONG + "a,x,8|a,y,unclear|b,y,4", "--missing unclear", "a: 0.8 -, b: - 0.4",
         "--max-response 10"),
    Case("two words that nobody knows", LONG + "a,x,ok|a,y,bad", "--true-value bad", "a: 0 1"),
    Case("two words and a third, of which one was said to be right", LONG + "a,x,ok|a,y,bad|b,x,bad|b,y,none at all",
         "--missing VALUE", "a: 1 0, b: 0 -", "--true-value ok", in_place_of=("VALUE", "none at all")),
    Case("answers in place of verdicts", "model_id,item_id,response,verdict|a,x,A,1|a,y,B,0|a,z,C,1",
         "--column response=...", "a: 1 0 1", in_place_of=("response=...", "response=verdict")),
    Case("answers of 0 and 1 beside verdicts",
         "model,question_id,response,label,is_correct|a,1,1,1,1|a,2,1,0,0|a,3,0,0,1|b,1,0,1,0|b,2,0,0,1|b,3,1,0,0",
         "--column response=is_correct", "a: 1 0 1, b: 0 1 0"),
    Case("a mean of all others", "model_id,x,y,z,Average|a,1,0,1,0.667|b,0,0,1,0.333", "--drop-column Average",
         "a: 1 0 1, b: 0 0 1"),
    Case("who won, of which one word alone is known",
         "model_id,item_id,response,points|a,x,model_a,1|a,y,model_b,0|a,z,tie,0.5", "--column response=...",
         "a: 1 0 0.5", in_place_of=("response=...", "response=points")),
    Case("a text column in a wide table", "model_id,maker,notes,x,y|a,org,good,1,0|b,lab,,0,1",
         "--drop-column maker --drop-column notes", "a: 1 0, b: 0 1"),
    Case("a number that is no response in a wide table", "model_id,params,x,y|a,7,1,0|b,70,0,1", "--drop-column params",
         "a: 1 0, b: 0 1"),
    Case("categories of a wide table of items", "item_id,kind,a,b|x,sums,1,0|y,sums,0,1|z,law,1,1|w,law,0,0",
         "--column scenario=kind", "a: 1 0 1 0, b: 0 1 1 0"),
    Case("row names that are items", '"","a","b"|"x",1,0|"y",0,0', "--as wide-items", "a: 1 0, b: 0 0", is_read=True),
    Case("columns by other names", "llm,wer,was_right|a,x,1|a,y,0", "--column item_id=wer --column response=was_right",
         "a: 1 0", "--column model_id=llm"),
    Case("ids of items that are called so, beside other columns",
         "ID,model,score,prompt,exception|x,a,1,p,|y,a,0,q,boom|x,b,1,p,", "--column item_id=ID", "a: 1 0, b: 1 -"),
    Case("a status of errors", "model,item,score,status|a,x,1,ok|a,y,0,timeout|b,x,0,ok|b,y,1,ok",
         "--column error=status", "a: 1 -, b: 0 1", is_read=True),
    Case("columns by other names, of which one is a usual one", "model,wer,correct|a,x,1|a,y,0", "--column item_id=wer",
         "a: 1 0"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_message_advises_gives_the_right_numbers(run, tmp_path, case):
    if "--jq" in case.words:
        pytest.importorskip("jq", reason="needs the extra jq")
    for name, content in ({"r.csv": case.content} if isinstance(case.content, str) else case.content).items():
        if isinstance(content, pl.DataFrame):
            content.write_parquet(tmp_path / name)
        else:
            (tmp_path / name).write_text(content.replace("|", "\n") + "\n")
    command = ("import", *sorted(tmp_path.iterdir()), "-o", tmp_path / "out.parquet", *shlex.split(case.words))
    first = run(*command)
    assert first.code == (0 if case.is_read else 1), first.err
    options = advised(first.err)
    assert options == shlex.split(case.advice), first.err
    run.ok(*command, *(case.in_place_of[1] if one in case.in_place_of[:1] else one for one in options))
    matrix = read_responses(tmp_path / "out.parquet")
    expected = dict(one.split(": ") for one in case.answers.split(", "))
    assert matrix.model_ids == list(expected)
    numbers = [[np.nan if one == "-" else float(one) for one in row.split()] for row in expected.values()]
    np.testing.assert_allclose(matrix.responses, numbers, atol=1e-12)
    if case.trials:
        all_alike = [[case.trials] * matrix.n_items] * matrix.n_models
        assert matrix.n_trials.tolist() == (case.trials if isinstance(case.trials, list) else all_alike)
    if case.item_ids:
        assert matrix.item_ids == case.item_ids.split()


ELSEWHERE = {
    "--model-id": "test_table.py: a table of one model",
    "--models": "tables of their own, test_known_parameters.py",
    "--items": "tables of their own, test_known_parameters.py",
    "--jq": "nested JSON, test_import_jq.py",
    "--limit": "an option of lm_eval",
    "--spec": "empty = 'drop' in a file, test_table.py",
    "--errors": "what lost answers count as, wherever they are read",
    "--scenario": "goes with prefix_scenario, test_long_table.py",
    "--allow-mixed-prompts": "test_telling_apart.py",
}


@pytest.mark.parametrize("name", ["chosen_rows", "columns", "long_table", "matrix", "rows", "table", "telling_apart"])
def test_every_option_that_a_reader_of_tables_advises_is_tried(name):
    source = inspect.getsource(importlib.import_module(f"itembank.readers.{name}"))
    named = set(re.findall(r"(?<![`-])--[a-z][a-z-]+", source))
    tried = {word for case in CASES for word in shlex.split(case.advice) if word.startswith("--")}
    assert named <= tried | set(ELSEWHERE), named - tried - set(ELSEWHERE)
