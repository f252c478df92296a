"""The calls of the snapshot: command lines over every method, family and law, in an order in which files are there."""

_SMALL = "--no-folds --format json"
_SELECTORS = (*("auto", "random", "stratified", "anchor-correctness", "anchor-irt", "v-optimal"),)
_CRITERIA = ("fisher", "d-optimal", "a-optimal", "v-optimal", "random", "uniform", "min-cost")
_ESTIMATORS = (
    *("mean", "weighted", "p-irt", "gp-irt", "task-mean", "task-mean-eb", "ridge", "factor", "stacked", "auto"),
)
_BANKS = {
    "1pl": "past.parquet --item-model 1pl",
    "2pl": "past.parquet --item-model 2pl --spec positive.toml",
    "guessing": "past.parquet --item-model 2pl --spec known-guessing.toml",
    "auto": "past.parquet",
    "nested": "past.parquet --item-model nested --dims 3 --spec by-task.toml",
    "map": "past.parquet --method map --dims 2 --spec majority.toml",
    "map-nested": "past.parquet --method map --item-model nested --dims 3",
    "mml": "few.parquet --method mml --item-model 2pl",
    "mml-counts": "few-samples.parquet --method mml --item-model 1pl --family binomial",
    "beta": "probabilities.parquet --item-model 2pl --family beta",
    "binomial": "samples.parquet --dims 1 --family binomial",
    "beta-binomial": "samples.parquet --item-model 2pl --family beta-binomial",
    "map-counts": "samples.parquet --method map --dims 1",
}
ANSWERED = ("digits/clean/1179", "digits/clean/628", "digits/rotation/45")
_LAWS = "--law irsl --law two-step --law sigmoid"
_PRETRAIN = "language.parquet --spec one-size.toml --target-flops 1e15"
_LOSS = "--loss losses.csv"
_CHOSEN = "--selection v-optimal.json --format json"
_DESIGN = "--method optimal-design --spec design-"

CALLS = {
    "bank": "calibrate past.parquet -o bank --dims 3 --format json",
    **{f"calibrate {name}": f"calibrate {words} -o bank-{name} {_SMALL}" for name, words in _BANKS.items()},
    "info": "info bank --format json",
    **{
        f"select {name}": f"select bank -n 20 --method {name} -o {name}.json --format json --seed 3"
        for name in _SELECTORS
    },
    **{f"select by {name}": f"select bank-auto -n 12 {_DESIGN}{name}.toml -o by-{name}.json" for name in _CRITERIA},
    **{
        f"estimate {name}": f"estimate bank new.parquet --selection v-optimal.json --method {name} --format json"
        for name in _ESTIMATORS
    },
    "estimate model-based": "estimate bank new.parquet --selection anchor-irt.json --interval model-based "
    "--format json",
    "estimate by design": "estimate bank new.parquet --selection random.json --interval design --format json",
    "estimate counts": "estimate bank-beta-binomial samples.parquet --interval model-based --method p-irt "
    "--format json",
    "compare": "compare bank two-new.parquet --selection v-optimal.json --target all --format json",
    "compare paired": "compare bank two-new.parquet --selection random.json --method paired --format json",
    "compare without bank": "compare two-new.parquet --target all --format json",
    "compare ranking": "compare bank new.parquet --selection v-optimal.json --ranking --format json",
    "gate": "gate verdict one-new.parquet another-new.parquet --margin 0.3 --format json",
    "gate start": "gate start one-new.parquet --bank bank --margin 0.3 -o gate --format json",
    "gate next": "gate next gate another-new.parquet --format json",
    "estimate parent": "estimate bank one-new.parquet --parent auto --format json",
    "plan half-width": "plan bank --half-width 0.04 --max-items 60 --format json",
    "plan difference": "plan bank --difference 0.05 --format json",
    "replay": "replay bank two-new.parquet --max-items 10 --format json -o asked.csv",
    "replay fisher": "replay bank two-new.parquet --session fisher.toml --max-items 8 --format json",
    "replay per cost": "replay bank two-new.parquet --session drawn.toml --cost seconds --max-items 8 --format json",
    "replay drawn": "replay bank two-new.parquet --criterion drawn --max-items 8 --format json",
    "replay threshold": "replay bank two-new.parquet --session sure.toml --max-items 30 --format json",
    "session start": "session start bank -o run.jsonl --model-id new --max-items 6 --half-width 0.1",
    "session ask": "session ask run.jsonl -n 3",
    "session tell": "session tell run.jsonl - --format json",
    "session status": "session status run.jsonl --format json",
    "study run": "study run study.toml -o study --jobs 1",
    "study table": "study table study --format json",
    "study predict": "study run prediction.toml -o prediction --jobs 1",
    "prediction table": "study table prediction --format json",
    "pretrain": f"scaling pretrain {_PRETRAIN} {_LOSS} {_LAWS} --show all --format json",
    "pretrain comparison": f"scaling pretrain {_PRETRAIN} {_LOSS} {_LAWS} --show comparison --format json",
    "pretrain trend": f"scaling pretrain {_PRETRAIN} --law trend --show all --format json",
    "pretrain correct": "scaling pretrain language-correct.parquet --spec no-size.toml --law irsl --format json",
    "test-time": "scaling test-time samples.parquet --k 1,10,1000 --format json",
    "test-time errors": "scaling test-time samples.parquet --k 1,5 --budget 8 --show errors --format json",
    "transfer": "scaling transfer language.parquet --source copying --target reversal --spec forced.toml --format json",
    "transfer k": "scaling transfer samples.parquet --source copying --target sorting --k 1,10 --clusters mixture "
    "--spec forced.toml --format json",
    "validity": "scaling transfer language.parquet --show validity --format json",
    "validity by group": "scaling transfer language-correct.parquet --show validity --clusters mixture --format json",
    "dimensions": "study dimensions past.parquet --dims 1,2 --format json",
    "homogeneity": "study homogeneity past.parquet --format json",
    "simulate": "simulate -o simulated.parquet --n-models 12 --n-items 60 --n-tasks 3 --n-dims 1 "
    "--missing 0.2 --format json",
    "calibrate base": f"calibrate old.parquet -o base --method map --dims 1 {_SMALL}",
    "start": "calibrate --items items.csv -o begun --format json",
    "select begun": "select begun -n 20 -o begun.json",
    "start two": "calibrate two-new.parquet --items items.csv -o begun-two --format json",
    "start few": "calibrate few.parquet --items few-items.csv -o begun-few --format json",
    "info responses": "info past.parquet --format json",
    "bank note": "bank note base text --name quiz -o named --format json",
    "bank add-models": "bank add-models named new-old.parquet --how random -o added --format json",
    "bank add-items": "bank add-items named new-few.parquet -o grown --format json",
    "bank link": "bank add-items named new-few.parquet --dry-run --format json",
    "bank add-scores": "bank add-scores bank scores.csv --score final -o scored --format json",
    "bank recalibrate": "bank recalibrate added -o refitted --format json",
    "bank retire": "bank retire grown some-ids.txt --reason key -o retired --format json",
    "bank restore": "bank retire retired some-ids.txt --status active --reason right -o restored --format json",
    "bank diff": "info named retired --format json",
    "bank log": "info restored --log --format json",
    "select win rate": "select bank -n 12 --target mean_win_rate -o by-win-rate.json",
    "select per scenario": "select bank -n 3 --per-scenario --exclude some-ids.txt -o per-scenario.json",
    "select must include": "select bank -n 30 --must-include some-ids.txt -o must-include.json",
    "select stages": "select bank -n 18 --stages 2 -o stage1.json",
    "select after": "select bank --after one-new.parquet --selection stage1.json -o stage2.json",
    "estimate stages": "estimate bank one-new.parquet --selection stage2.json --format json",
    "estimate begun": "estimate begun new.parquet --selection begun.json --format json",
    "estimate old target": "estimate retired new-few.parquet --target quiz@1 --format json",
    "estimate mean win rate": f"estimate bank new.parquet --target mean_win_rate {_CHOSEN}",
    "estimate external": f"estimate scored new.parquet --target final {_CHOSEN}",
    "estimate repeated": "estimate bank-beta-binomial samples.parquet --estimand repeated --interval model-based "
    "--method p-irt --format json",
    "estimate page": f"estimate bank one-new.parquet --report one-new.html {_CHOSEN}",
    "check": "check bank-2pl new.parquet --group leaked=some-ids.txt -n 20 --format json",
    "compare mean win rate": f"compare bank two-new.parquet --target mean_win_rate {_CHOSEN}",
    "compare page": f"compare bank two-new.parquet --report comparison.html {_CHOSEN}",
    "replay ability": "replay bank-2pl two-new.parquet --session ability.toml --max-items 8 --format json",
    "replay better than": "replay bank-2pl two-new.parquet --max-items 8 --session better.toml --format json",
    "session run": "session run run.jsonl --command 'echo 1' --format json",
    "check session": "check bank run.jsonl --format json",
    "session extend": "session extend run.jsonl --max-items 8",
    "session serve": "session serve run.jsonl",
    "session export": "import run.jsonl -o told.parquet --format json",
    "audit": "check few.parquet --choices choices.csv --by training_share -o audit.csv --format json",
    "audit known": "check few.parquet --known some-ids.txt --sort suspicion --report audit.html --format json",
    "homogeneity of a bank": "study homogeneity bank-2pl --format json",
    "predictions": "study predictions bank-2pl --format json",
    "weights": "study weights bank v-optimal.json random.json --format json",
    "tasks": "study tasks past.parquet --cost seconds --format json",
    "pretrain last": "scaling pretrain language.parquet --spec one-size.toml --law last-score --law last-line "
    "--show all --format json",
    "pretrain alone": "scaling pretrain language.parquet --law irsl --spec alone.toml "
    "--report pretrain.html --format json",
    "transfer common scale": "scaling transfer language.parquet --source copying --target reversal "
    "--method common-scale --spec forced.toml --format json",
    "validity past": "scaling transfer past.parquet --show validity --format json",
    "test-time page": "scaling test-time samples.parquet --bank bank-beta-binomial --k 1,10 "
    "--spec model-based.toml --report test-time.html --format json",
    "report": "report base -o base.html",
    "report results": "estimate bank new.parquet --report results.html --selection v-optimal.json",
    "report session": "report run.jsonl -o session.html",
    "report study": "report study -o study.html",
    "report prediction": "report prediction -o prediction.html",
    "publish-tiny": "publish-tiny bank -n 20 -o tiny --format json",
    "estimate tiny": "estimate tiny new.parquet --ignore-unknown --format json",
    "simulate guessing": "simulate -o guessing.parquet --n-models 8 --n-items 40 --n-tasks 2 --n-dims 1 "
    "--guessing 0.25 --format json",
    "sample-data": "sample-data --format json",
}
"""Command lines by a name of the call that stays: a call that is gone is a line less here."""

INPUTS = {
    "session tell": "".join(f'{{"item_id": "{item}", "response": {k % 2}}}\n' for k, item in enumerate(ANSWERED)),
    "session serve": '{"request": "ask", "n": 2}\n{"request": "scores"}\n',
}
"""Standard input."""

NOT_HERE = {
    "download": "its numbers are those of the files that it fetches",
    "bank build": "it needs a connection, or a folder of a store's files",
    "bank list": "it shows what stands on this machine",
    "export ids": "it writes ids as they are",
    "pull": "it needs the Hub",
    "push": "it needs the Hub",
    "quickstart": "it takes long, for what other calls do",
    "run harbor": "it needs Harbor",
    "run inspect": "it needs inspect_ai",
    "run lm-eval": "it needs lm_eval",
}
"""Commands without a call, and why."""
