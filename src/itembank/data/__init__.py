"""Responses, score targets, selections, calibrations and banks, and the files they live in."""
