"""Files of rare choices, for `--session` and `--spec`."""

_FAST = 'interval = "model-based"\n'
_PLAIN = '[[laws]]\nname = "irsl"\nshape = "line"\npooling = "none"\n'
FILES = {
    "fast": _FAST,
    "d-optimal": f'{_FAST}criterion = "d-optimal"\n',
    "random": f'{_FAST}criterion = "random"\n',
    "sure-soon": f"{_FAST}stopping.decision = {{threshold = 0.6, confidence = 0.8}}\n",
    "rare": f'{_FAST}criterion = "fisher"\nconstraints.at_most = 1\n',
    "design": 'criterion = "d-optimal"\nper_cost = true\n',
    "random-design": 'criterion = "random"\n',
    "other-design": "at_least.math = 6\n",
    "fitted-law": "n_checked = 0\n" + _PLAIN,
    "plain-law": _PLAIN,
    "two-sizes": "n_checked = 2\nfewest_sizes = 2\n" + _PLAIN,
    "one-size": "n_checked = 1\nfewest_sizes = 2\n" + _PLAIN,
    "few-recipes": 'n_checked = 0\ncalibration_recipes = ["recipe-0", "recipe-1"]\n',
    "calibrating": 'n_checked = 0\ncalibration_recipes = ["recipe-0", "recipe-1"]\n'
    '[[laws]]\nname = "irsl"\nshape = "line"\nfamily = "bernoulli"\n',
    "other-law": 'n_checked = 0\ncalibration_recipes = ["recipe-2"]\n'
    '[[laws]]\nname = "irsl"\nshape = "bent"\nfamily = "beta"\n',
    "bent-law": 'n_checked = 0\n[[laws]]\nname = "irsl"\nshape = "bent"\ngap = "none"\n',
    "two-folds": "n_folds = 2\nis_forced = true\n",
    "three-folds": "n_folds = 3\nis_forced = true\n",
    "forced": "is_forced = true\n",
    "few-easy": "easy_fraction = 0.3\nis_forced = true\n",
    "model-based": 'interval = "model-based"\n',
    "by-errors": 'interval = "calibrated"\n',
    "unsampled": 'interval = "model-based"\ninclude_unsampled = true\n',
    "without-rare": 'interval = "model-based"\nminimum_pass_rate = 0.3\n',
    "reading": "prefix_scenario = true\n",
    "errors": 'errors = "missing"\n',
    "guessing": "known_guessing = true\n",
}


def make_files(folder):
    for name, content in FILES.items():
        (folder / f"{name}.toml").write_text(content)
