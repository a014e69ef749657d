"""Where graphs come from: synthetic, benchmarks, files; their labels and splits."""
