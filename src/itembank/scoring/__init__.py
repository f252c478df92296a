"""Ability of models, given responses and item parameters."""
