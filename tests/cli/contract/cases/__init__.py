"""A case for every command, in one file a subject.

To add an option: its value in `values` of its command. To add a command: a `Case` with a mode for each way of calling
it in which other options have a say.
"""

from tests.cli.contract.cases import banks, plain, sessions, studies

CASES = plain.CASES | banks.CASES | sessions.CASES | studies.CASES
