"""Files of rare choices, for `--session` and `--spec`."""

_FAST = 'interval = "model-based"\n'
FILES = {
    "fast": _FAST,
    "d-optimal": f'{_FAST}criterion = "d-optimal"\n',
    "random": f'{_FAST}criterion = "random"\n',
    "sure-soon": f"{_FAST}stopping.decision = {{threshold = 0.3, confidence = 0.8}}\n",
    "rare": f'{_FAST}criterion = "trace"\nconstraints.at_most = 1\n',
    "design": 'criterion = "d-optimal"\nper_cost = true\n',
    "random-design": 'criterion = "random"\n',
    "other-design": "at_least.math = 6\n",
    "plain-law": '[[laws]]\nname = "irsl"\nshape = "line"\npooling = "none"\n',
    "two-sizes": 'fewest_sizes = 2\n[[laws]]\nname = "irsl"\nshape = "line"\npooling = "none"\n',
    "few-recipes": 'calibration_recipes = ["recipe-0", "recipe-1"]\n',
    "calibrating": 'calibration_recipes = ["recipe-0", "recipe-1"]\n[[laws]]\nname = "irsl"\nshape = "line"\n'
    'family = "bernoulli"\n',
    "other-law": 'calibration_recipes = ["recipe-2"]\n[[laws]]\nname = "irsl"\nshape = "bent"\nfamily = "beta"\n',
    "bent-law": '[[laws]]\nname = "irsl"\nshape = "bent"\ngap = "none"\n',
    "two-folds": "n_folds = 2\n",
    "three-folds": "n_folds = 3\n",
    "few-easy": "easy_fraction = 0.3\n",
    "guessing": "known_guessing = true\n",
}


def make_files(folder):
    for name, content in FILES.items():
        (folder / f"{name}.toml").write_text(content)
