"""New items on a bank's scale: fixed-parameter calibration, Stocking-Lord's link, its error, drifted items."""
