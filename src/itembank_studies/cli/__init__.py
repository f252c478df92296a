"""`itembank replay`, `itembank study` and `itembank simulate`."""

COMMANDS = {
    "One item at a time": {"replay": ("itembank_studies.cli.replay", "Run recorded models through adaptive sessions.")},
    "The benchmark and larger models": {
        "study": ("itembank_studies.cli.study", "Compare ways to select and to estimate; examine a benchmark."),
        "simulate": ("itembank_studies.cli.simulate", "Simulate responses whose true parameters are known."),
    },
}
"""Commands by heading of help, with the module and one line of help of each."""
