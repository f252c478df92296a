"""Pre-training laws: benchmark scores from training compute."""
