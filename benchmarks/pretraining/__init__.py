"""How well pre-training laws order recipes and forecast larger models."""
