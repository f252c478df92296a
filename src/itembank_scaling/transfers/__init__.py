"""Abilities from one set of items for another: convergent validity, transfer."""
