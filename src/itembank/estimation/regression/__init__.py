"""Estimators that learn the score from the calibration models' responses to the same items."""
