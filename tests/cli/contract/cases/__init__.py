"""A case for every command, in one file a subject.

To add an option: one line in `values` of its command. To add a command: a `Case` with a mode for each way of calling it
in which other options have a say.
"""

from tests.cli.contract.cases import banks, gating, harnesses, living, plain, publishing, scaling, sessions, studies

PARTS = (plain, banks, living, publishing, sessions, gating, scaling, studies, harnesses)
CASES = {command: case for part in PARTS for command, case in part.CASES.items()}
