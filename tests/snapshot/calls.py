"""The calls of the snapshot: command lines over every method, family and law, in an order in which files are there."""

_SMALL = "--no-folds --format json"
_SELECTORS = (
    *("auto", "random", "stratified", "anchor-correctness", "anchor-irt", "anchor-latent", "v-optimal"),
    *("disagreement", "information", "uncertainty"),
)
_CRITERIA = ("trace", "d-optimal", "a-optimal", "v-optimal", "random", "uniform", "min-cost --cost seconds")
_ESTIMATORS = (
    *("mean", "weighted", "p-irt", "gp-irt", "task-mean", "task-mean-eb", "ridge", "knn", "random-forest", "metabench"),
    *("factor", "stacked", "auto"),
)
_BANKS = {
    "1pl": "past.parquet --item-model 1pl",
    "2pl": "past.parquet --item-model 2pl --positive-discrimination",
    "guessing": "past.parquet --item-model 2pl --known-guessing",
    "auto": "past.parquet",
    "nested": "past.parquet --item-model nested --dims 3 --by-task",
    "map": "past.parquet --method map --dims 2 --degenerate majority",
    "map-nested": "past.parquet --method map --item-model nested --dims 3",
    "map-bifactor": "past.parquet --method map --item-model bifactor",
    "mml": "few.parquet --method mml --item-model 2pl",
    "mml-counts": "few-samples.parquet --method mml --item-model 1pl --family binomial",
    "beta": "probabilities.parquet --item-model 2pl --family beta",
    "map-beta": "probabilities.parquet --method map --dims 1 --family beta --precision global",
    "binomial": "samples.parquet --dims 1 --family binomial",
    "beta-binomial": "samples.parquet --item-model 2pl --family beta-binomial",
    "map-counts": "samples.parquet --method map --dims 1",
}
ANSWERED = ("digits/clean/1179", "digits/clean/628", "digits/rotation/45")
_LAWS = "--law irsl --law two-step --law sigmoid"
_PRETRAIN = "language.parquet --checked 1 --target-flops 1e15"
_LOSS = "--loss losses.csv"

CALLS = {
    "bank": "calibrate past.parquet -o bank --dims 3 --format json",
    **{f"calibrate {name}": f"calibrate {words} -o bank-{name} {_SMALL}" for name, words in _BANKS.items()},
    "info": "info bank --format json",
    **{
        f"select {name}": f"select bank -n 20 --method {name} -o {name}.json --format json --seed 3"
        for name in _SELECTORS
    },
    **{
        f"select by {name.split()[0]}": f"select bank-auto -n 12 --criterion {name} -o by-{name.split()[0]}.json"
        for name in _CRITERIA
    },
    "select by fisher": "select bank-2pl -n 12 --criterion fisher -o by-fisher.json",
    "select by kl": "select bank-2pl -n 12 --criterion kl -o by-kl.json",
    **{
        f"estimate {name}": f"estimate bank new.parquet --selection v-optimal.json --method {name} --format json"
        for name in _ESTIMATORS
    },
    "estimate model-based": "estimate bank new.parquet --selection anchor-irt.json --interval model-based "
    "--format json",
    "estimate by design": "estimate bank new.parquet --selection random.json --interval design --format json",
    "estimate by uncertainty": "estimate bank new.parquet --selection uncertainty.json --interval design --format json",
    "estimate win rates": "estimate bank new.parquet --selection stratified.json --win-rate --format json",
    "estimate counts": "estimate bank-beta-binomial samples.parquet --interval model-based --method p-irt "
    "--format json",
    "compare": "compare bank two-new.parquet --selection v-optimal.json --target all --format json",
    "compare paired": "compare bank two-new.parquet --selection random.json --method paired --format json",
    "compare ranking": "compare bank new.parquet --selection v-optimal.json --ranking --format json",
    "plan half-width": "plan bank --half-width 0.04 --selector random --method p-irt --max-items 60 --format json",
    "plan difference": "plan bank --difference 0.05 --selector random --method gp-irt --max-items 60 --format json",
    "replay": "replay bank two-new.parquet --max-items 10 --format json -o asked.csv",
    "replay trace": "replay bank two-new.parquet --criterion trace --max-items 8 --interval model-based --format json",
    "replay kl": "replay bank-2pl two-new.parquet --criterion kl --max-items 8 --interval model-based --format json",
    "replay per cost": "replay bank two-new.parquet --criterion d-optimal --cost seconds --max-items 8 --at-least 1 "
    "--randomesque 3 --interval model-based --format json",
    "replay threshold": "replay bank two-new.parquet --threshold 0.6 --confidence 0.9 --max-items 30 "
    "--interval model-based --format json",
    "session start": "session start bank -o run.jsonl --model-id new --max-items 6 --half-width 0.1 --prior-group "
    "family=tree",
    "session ask": "session ask run.jsonl -n 3",
    "session tell": "session tell run.jsonl - --format json",
    "session status": "session status run.jsonl --format json",
    "study run": "study run study.toml -o study --jobs 1",
    "study table": "study table study --format json",
    "study predict": "study predict prediction.toml -o prediction --jobs 1",
    "prediction table": "study table prediction --format json",
    "pretrain": f"scaling pretrain {_PRETRAIN} {_LOSS} {_LAWS} --show all --format json",
    "pretrain comparison": f"scaling pretrain {_PRETRAIN} {_LOSS} {_LAWS} --show comparison --format json",
    "pretrain trend": f"scaling pretrain {_PRETRAIN} --law trend --show all --format json",
    "pretrain correct": "scaling pretrain language-correct.parquet --checked 0 --law irsl --format json",
    "test-time": "scaling test-time samples.parquet --k 1,10,1000 --format json",
    "test-time errors": "scaling test-time samples.parquet --k 1,5 --budget 8 --show errors --format json",
    "test-time plan": "scaling test-time samples.parquet --bank bank-beta-binomial --half-width 0.05 --show plan "
    "--format json",
    "transfer": "scaling transfer language.parquet --source copying --target reversal --force --format json",
    "transfer k": "scaling transfer samples.parquet --source copying --target sorting --k 1,10 --group mixture --force "
    "--format json",
    "validity": "scaling validity language.parquet --format json",
    "validity by group": "scaling validity language-correct.parquet --group mixture --format json",
    "dimensions": "diagnose dimensions past.parquet --dims 1,2 --format json",
    "homogeneity": "diagnose homogeneity past.parquet --format json",
    "simulate": "simulate -o simulated.parquet --models 12 --items 60 --tasks 3 --dims 1 --missing 0.2 --format json",
}
"""Command lines by a name of the call that stays."""

INPUTS = {
    "session tell": "".join(f'{{"item_id": "{item}", "response": {k % 2}}}\n' for k, item in enumerate(ANSWERED)),
}
"""Standard input."""
