"""The training loop in plain PyTorch, its options, and the folder that every run writes."""
