"""`itembank run`."""

COMMANDS = {
    "From past results to scores": {
        "run": ("itembank_harnesses.cli.run", "Run chosen items inside an evaluation harness.")
    }
}
"""Commands by heading of help, with the module and one line of help of each."""
