"""`itembank scaling`."""

COMMANDS = {
    "The benchmark and larger models": {
        "scaling": ("itembank_scaling.cli.scaling", "Forecast scores with more training compute or more samples.")
    }
}
"""Commands by heading of help, with the module and one line of help of each."""
