"""Variational Bayes with hierarchical priors."""
