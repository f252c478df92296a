"""`itembank run` and `itembank download`."""

COMMANDS = {
    "From past results to scores": {
        "download": ("itembank_harnesses.cli.download", "Fetch and read public stores of results, by name."),
        "run": ("itembank_harnesses.cli.run", "Run chosen items inside an evaluation harness."),
    }
}
"""Commands by heading of help, with the module and one line of help of each."""
