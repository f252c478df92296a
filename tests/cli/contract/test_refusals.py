"""What commands refuse: an exit code, words that say why, nothing on standard output, and no file left behind."""

import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import itembank as ib
from tests.bank.banks import make_bank
from tests.cli.conftest import new_results
from tests.cli.contract import calls
from tests.cli.session.loops import FAST, LIMIT
from tests.scaling.samples import simulated_samples
from tests.scaling.two_scenarios import simulated

pytestmark = pytest.mark.usefixtures("few_folds")

LOG = Path(__file__).parents[2] / "readers" / "lm_eval_0_4_13"
_CALIBRATE = "calibrate past.parquet -o out/bank"
_START = f"session start costly -o out/j --model-id m {shlex.join(map(str, LIMIT))}"
_DESIGN = "select costly -n 6 --method optimal-design"
_IMPORT = "import table.csv -o out/r.parquet"
_SCALE = "scaling transfer two.parquet"

MISUSED = """
@
  calibrat -> Did you mean 'calibrate'?
info
  none -> does not exist
  bank --formatt csv -> Did you mean '--format'?
import
  -o out/r.parquet -> Missing argument 'PATH...'
  table.csv -> Missing option '-o'
  nowhere.csv -o out/r.parquet -> does not exist
  table.csv -o out/r.csv -> must end in .parquet
import table.csv -o out/r.parquet
  --column model_id -> must be OURS=THEIRS
  --column llm=model_id -> columns must name some of
  --repeats median -> median
  --as sheet -> sheet
  --as lm-evals -> Did you mean 'lm-eval'?
  --max-response 0 -> max_response must be a finite number > 0
  --where judge -> --where: must be COLUMN=VALUE, got 'judge'
download
  bfcl -> -o FILE.parquet
  bfc --from . -o out/r.parquet -> Did you mean 'bfcl'?
  bfcl --from . --model m -o out/r.parquet -> --model goes with results that are fetched, not with --from
calibrate past.parquet -o out/bank
  --dims two -> whole number or 'auto'
  --dims auto --item-model 2pl -> --dims auto
  --dims 2 --item-model 2pl -> 'mirt'
  --dims 3 --method mml -> fits one ability
  --dims 1 --item-model nested -> n_dims of 2 or more
  --method mml --item-model nested -> The variational method has it
  --items items.csv --parameters -> has no past models. Leave RESPONSES out
calibrate -o out/bank
  -> --items ITEMS.csv
  --items items.csv --dims 2 -> goes with results of many past models, not with --items
  --items items.csv --no-folds -> goes with results of many past models, not with --items
  --items items.csv --benchmark mmlu -> --benchmark goes with --parameters
select bank
  -> number of items is missing: -n N
  -n 31 -> 30
  -n 6 --spec rare.toml -> --spec goes with --method NAME
  --after new.csv -> --after RESPONSES --selection FILE
  --selection s.json -> --after RESPONSES --selection FILE
  --after new.csv --selection s.json -n 9 -> --n-items goes with a first stage, not with
  --after new.csv --selection s.json --target law -> --target goes with a first stage
  --after new.csv --selection s.json --predict law -> --predict goes with a first stage, not with --after
  -n 6 --predict law --target law --method v-optimal -> --predict names the wanted score itself: leave --target
  -n 6 --predict law --predict math --predict code -> Leave one at least to be asked.
  -n 6 --target law -> --target law goes with --method v-optimal or optimal-design
  -n 6 --target law --method random -> --target goes with --method auto, v-optimal or optimal-design
select costly -n 6 --method optimal-design
  --target maths -> target must be one of
estimate
  new.parquet new.parquet -> is a file; a bank is a folder
  bank bank --method gpirt -> Did you mean 'gp-irt'?
  bank new.parquet --level 0 -> level
  bank new.parquet --level 1 -> level
  bank new.parquet --level 1.5 -> level
  bank new.parquet --level -0.1 -> level
check past.parquet
  -o out/audit.doc -> must end in .csv or .parquet
  --only fit -> --only goes with a BANK and RESPONSES of new models
  --clusters base -> --clusters goes with --by COLUMN
  --fail-on bad -> 'bad' is not one of
check bank some.parquet
  --only fit --since 2025-01-01 -> --since
  --only drift --reference ids.txt -> --reference
  --only fit -n 12 -> -n
compare bank-20 some.parquet
  --model new/a --model new/a -> named once
  --model new/a -> at least two
  --level 0 -> level
  --target history -> history
  --method magic -> magic
gate some.parquet some.parquet
  --estimand expected -> 'questions'
plan bank-20
  --half-width 2 -> half_width
  --half-width 0.1 --difference 0.1 -> one goal
  --level 0 -> level
  --max-items 1 -> max_items
  --trials --max-items 9 -> not with --trials
  --budget 9 -> goes with --trials
session start costly -o out/j --model-id m --max-items 6 --session @fast
  --half-width wide -> SCORE=NUMBER
  --half-width nan -> half-width of 'overall' must be a number
  --half-width physics=0.1 -> physics
  --half-width 0.1 --half-width overall=0.2 -> once for 'overall'
  --max-cost 300 -> UNIT=AMOUNT, such as
  --max-cost output_tokens=0 -> budget of output_tokens
  --threshold 0.5 --better-than org/model-1 -> two questions
  --threshold 50 -> threshold
  --target physics -> physics
  --predict physics -> physics
  --predict law --target law -> leave --target out
  --model-id '' -> model_id
session ask
  absent -> does not exist
report -o out/page.html
  bank --bank bank -> --bank goes with a journal of a session
  new.parquet -> must be a bank's folder, the journal of a session or the folder of a study
run inspect bank task.py -o out/run
  -> Say which items to run
  -n 3 --adaptive -> Say which items to run
  -n 3 --batch 4 -> --batch goes with --adaptive
run harbor bank tasks@1 -o out/run
  -n 3 --batch 4 -- -a agent -> --batch goes with --adaptive
  -n 3 -- -a agent --n-tasks 4 -> arguments of harbor must not hold '--n-tasks'
  -n 3 -> must name an agent
run lm-eval bank {} -o out/run -- --model hf --model_args pretrained=org/m
  -> Say which items to run
  -n 3 --adaptive -> Say which items to run
  -n 3 --max-items 4 -> --max-items goes with --adaptive
  -n 3 --half-width 0.1 -> --half-width goes with --adaptive
run lm-eval bank -n 3 -o out/run
  --model hf -> Arguments of lm_eval come last, after two dashes: -- --model
  -- --model hf -> --model-id NAME
  -- --model hf --model_args pretrained=org/m --limit 5 -> --limit must be left out after the two dashes (--): the
simulate
  -o out/r.csv -> must end in .parquet
  -o out/r.parquet --n-items 3 --n-tasks 4 -> n_items must be at least n_tasks = 4, got 3
  -o out/r.parquet --missing 1.5 -> missing
scaling test-time samples.parquet
  --show errors -> needs --budget
  --k 1,2.5 -> whole numbers
  --k ten -> whole numbers
  --k 0 -> k must be
  --method unbiased --k 1000 -> as few as 100
  --builtin classifiers -> Give either RESPONSES or --builtin
  --figure out/curves.txt -> must end in
scaling transfer two.parquet
  --target s1 -> --target needs --source
  --source s0 --k 1,x -> whole numbers
  --source s0 --k 1,5 -> without repeated samples
  --source s0 --figure out/figure.doc -> must end in
  --show validity --source s0 -> --source goes with
study dimensions past.parquet
  --dims 1,two -> whole numbers
  --dims 0 -> at least 1
  --figure out/dimensions.doc -> must end in
"""  # Exit code 2: what is asked for cannot be. Commands, and below each what follows, and words of the message

FAILING = """
calibrate past.parquet -o out/bank
  --within custom -> 'weight'
calibrate -o out/bank
  --items nameless.csv -> item_id
  probabilities.parquet --family binomial --dims 1 -> needs the number of trials
select bank -n 12
  --must-include ids.txt -> every included item must be in bank
estimate bank
  unknown.parquet -> math/9999
compare bank-20 some.parquet
  --model new/a --model elsewhere -> elsewhere
session start costly -o out/j --model-id m --max-items 6 --session @fast
  --max-cost euros=300 -> euros
  --better-than unheard -> unheard
session ask
  ids.txt -> not the journal of a session
  empty.txt -> not the journal of a session
scaling transfer two.parquet
  --source s7 -> got 's7'
  --source s0 --clusters colour -> must be a column of the model table
study table
  empty --figure out/new.png -> is not a study
"""  # Exit code 1: data do not allow it

FILES = {
    f"{_CALIBRATE} --spec": {
        ("--item-model nested", "general_weight = 1"): "must be among",
        ("", 'degenerate = "majority"'): "must be among",
        ("--method map", "by_task = true"): "must be among",
        ("--method map", "positive_discrimination = true"): "must be among",
        ("--item-model 1pl", "by_task = true"): "with a slope an item",
        ("", "by_taks = true"): "Did you mean 'by_task'?",
        ("", "by_task = 1"): "by_task must be true or false, got 1",
        ("--family beta", 'precision = "much"'): "precision must be a number, 'global' or 'scenario', got 'much'",
    },
    f"{_DESIGN} --spec": {
        ("", "at_leats = 2"): "Did you mean 'at_least'?",
        ("", "at_least.maths = 2"): "at_least must name scenarios of the bank",
        ("", "at_least = 2.5"): "at_least must be a whole number or a table, got 2.5",
        ("", "at_least.math = 3\nat_most = 2"): "at_least is above at_most in 'math (3 > 2)'",
        ("--per-scenario", "at_most.law = 3"): "every scenario gets n_items = 6",
        ("", 'criterion = "random"\nper_cost = true'): "only information can be divided by cost",
        ("", 'criterion = "fisher"\nper_cost = true\ncost = "euros"'): "one of 'tokens', 'output_tokens', got 'euros'",
        ("--method random", "at_least = 2"): "rare.toml: the file must be empty",
    },
    f"{_START} --session": {
        ("", "constraints.at_least.math = 1.5"): "constraints.at_least.math must be a whole number, got 1.5",
        ("", "constraints.at_least = -1"): "whole number",
        ("", "constraints.at_least.physics = 1"): "physics",
        ("", "constraints = {at_least = {math = 4}, at_most = 3}"): "math (4 > 3)",
        ("", "constraints.at_least.math = 7"): "7 items in all, and 6",
        ("", "criterion = {name = 'random', of = 'score'}"): "[criterion] must be empty",
        ("", "criterion = 'd-optimum'"): "rare.toml: criterion method must be one of",
        ("", "stopping.halfwidth = 0.1"): "Did you mean 'half_width'?",
        ("", "stopping.half_width = 3"): "rare.toml: half-width of 'overall' must be",
        ("", "n_items = 3"): "rare.toml: keys of the file must be among",
        ("", "n_start = "): "cannot be read as TOML",
    },
    f"{_SCALE} --source s0 --spec": {
        ("", "easy_fraction = 2"): "easy_fraction",
        ("", "folds = 3"): "Did you mean 'n_folds'",
        ("", "n_folds = 2.5"): "whole number",
    },
    f"import {shlex.quote(str(LOG))} -o out/r.parquet --spec": {
        ("--metric acc", 'response = "probability"'): "takes no logged metric",
        ("--task programs", 'response = "probability"'): "generated text",
        ("", 'response = "likelihood"'): "response must be 'metric', 'accuracy'",
    },
}  # Files of rare choices, with what follows them on the command line
BROKEN = {"n_start = ", 'criterion = "fisher"\nper_cost = true\ncost = "euros"', "--task programs"}
"""Of these, what ends with exit code 1: no TOML, or data that do not allow it."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    for name in ("out", "empty"):
        (folder / name).mkdir()
    bank = make_bank()
    for name, made in (("bank", bank), ("bank-20", make_bank(n_models=20))):
        made.save(folder / name)
    make_bank(n_items=60, with_extras=True).save(folder / "costly")
    past = make_bank(n_models=25, n_items=40).responses
    ib.write_responses(past, folder / "past.parquet")
    fuzzy = ib.ResponseMatrix.create(0.2 + 0.5 * past.responses, items=past.items)
    ib.write_responses(fuzzy, folder / "probabilities.parquet")
    new = new_results()
    ib.write_responses(new, folder / "new.parquet")
    ib.write_responses(new.take(items=np.arange(18)), folder / "some.parquet")
    renamed = new.items.with_columns(pl.col("item_id").replace("math/0", "math/9999"))
    ib.write_responses(new.with_tables(items=renamed), folder / "unknown.parquet")
    ib.write_responses(simulated_samples(n_models=12, n_items=24, n_trials=100).responses, folder / "samples.parquet")
    ib.write_responses(simulated(np.random.default_rng(4), n_models=60, n_items=20)[0], folder / "two.parquet")
    texts = {
        "table.csv": "model_id,item_id,response\na,x,1\na,y,0\n", "items.csv": "item_id,scenario\nq1,a\nq2,b\n",
        "nameless.csv": "name\nq1\n", "ids.txt": "math/0\nmath/no\n", "new.csv": "", "s.json": "{}", "empty.txt": "",
        "rare.toml": "at_least = 2",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert calls.run(f"session start bank -o begun.jsonl --model-id m {shlex.join(FAST)}")[0] == 0
    return folder


def cases():
    """Each command with all its words, the text of a file of rare choices, its exit code, and what the message says."""
    command = ""
    for code, table in ((2, MISUSED), (1, FAILING)):
        for line in table.replace("@fast", FAST[1]).strip().splitlines():
            if line.startswith(" "):
                words, _, text = line.partition("-> ")
                yield command.format(words) if "{}" in command else f"{command} {words}", "", code, text
            else:
                command = line.removeprefix("@")
    for command, known in FILES.items():
        for (words, content), text in known.items():
            interval = 'interval = "model-based"\n' * command.endswith("--session")
            yield f"{command} @rare {words}", interval + content, 1 if BROKEN & {content, words} else 2, text


@pytest.mark.parametrize(("words", "content", "code", "text"), list(cases()))
def test_what_cannot_be_is_refused(run, world, tmp_path, monkeypatch, words, content, code, text):
    monkeypatch.chdir(world)
    (tmp_path / "rare.toml").write_text(content, encoding="utf-8")
    run.fails(code, text, *shlex.split(words.replace("@rare", str(tmp_path / "rare.toml"))))
    assert not list((world / "out").iterdir())
