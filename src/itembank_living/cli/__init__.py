"""`itembank bank`, and the commands that publish."""

COMMANDS = {
    "From past results to scores": {"bank": ("itembank_living.cli.bank", "Add models and items, retire items.")},
    "For others": {
        "publish-tiny": ("itembank_living.cli.publish", "Publish a small subset that predicts the whole benchmark."),
        "push": ("itembank_living.cli.publish", "Push a bank to the Hugging Face Hub."),
        "pull": ("itembank_living.cli.publish", "Copy a bank of the Hugging Face Hub into a folder."),
    },
}
"""Commands by heading of help, with the module and one line of help of each."""
