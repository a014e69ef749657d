"""Tasks: the labels, queries, loss, metrics and class names of each, one file per task."""
