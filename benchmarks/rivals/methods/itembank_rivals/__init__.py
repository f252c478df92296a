"""Methods of other papers that benchmarks compare with: DISCO, metabench, AIPW and Bayesian quadrature.

A package like any that brings methods to itembank (`contributing/own-methods.md`): after ``pip install -e
benchmarks/rivals/methods`` they are known by their names, in Python, in studies and on the command line.

TailoredBench (arXiv 2502.13576) asks in two stages and EssenceBench (arXiv 2510.10457) searches by a genetic
algorithm; they are not here.
"""
