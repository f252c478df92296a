"""What a figure says in words: its message, its note, the names beside its lines."""


def message_of(figure):
    return " ".join(figure.get_suptitle().split())


def note_of(figure):
    """Say what marks and bands are: the text at the bottom."""
    return " ".join(figure.texts[-1].get_text().split())


def names_of(axes):
    """Names written beside the right edge of a panel, the highest first."""
    beside = [text for text in axes.texts if text.get_position()[0] > 1.0]
    return [text.get_text() for text in sorted(beside, key=lambda text: -text.get_position()[1])]
