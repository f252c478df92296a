"""What items are flagged for, and what they can be put in order by: names that the command shows in its help."""

from typing import Final

REASONS: Final = {
    "wrong-key": "the answers speak against the key",
    "best-fail": "the best models fail on it, though not on other items of its group",
    "noise": "answers have nothing to do with ability",
    "duplicate": "models answer it as if it were another item asked again",
    "differs": "easier or harder for some models than for others of equal ability",
    "dead": "no model is right",
    "saturated": "every model is right",
}
"""The gravest first."""
SAME_FOR_ALL: Final = ("dead", "saturated")
"""Items that these are said of are counted and not flagged: answers that are all alike say nothing against one of them
that they do not say against all."""
ORDERS: Final = {"probability": "suspicion", "suspicion": "probability", "key-ratio": "suspicion"}
"""With what decides between equals."""
