"""Marginal maximum likelihood by EM with quadrature."""
