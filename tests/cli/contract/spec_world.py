"""Files of rare choices, for `--session` and `--spec`."""

_FAST = 'interval = "model-based"\n'
FILES = {
    "fast": _FAST,
    "d-optimal": f'{_FAST}criterion = "d-optimal"\n',
    "random": f'{_FAST}criterion = "random"\n',
    "sure-soon": f"{_FAST}stopping.decision = {{threshold = 0.3, confidence = 0.8}}\n",
    "rare": f'{_FAST}criterion = "trace"\nconstraints.at_most = 1\n',
}


def make_files(folder):
    for name, content in FILES.items():
        (folder / f"{name}.toml").write_text(content)
