"""The paper: every table as a list of runs, the published numbers, what runs them, and where results are kept."""
