"""Whether a change broke a model: pass, fail or undecided against a margin, with as few items as that takes."""
