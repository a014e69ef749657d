"""What the performance figures of the docs are measured with: `python -m benchmarks`."""
