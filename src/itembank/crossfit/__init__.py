"""Leaving calibration models out: banks that have not seen them, and what is tried on them."""
