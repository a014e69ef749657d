"""What the paper lets us expect of our numbers, and whether it holds; one file for each kind of expectation."""
