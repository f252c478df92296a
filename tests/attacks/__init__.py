"""Attacks: damaged and hostile files, killed processes, flipped bits. `make attack` runs them at length."""
