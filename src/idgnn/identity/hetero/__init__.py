"""Heterogeneous graphs: typed queries, identity graphs, schedules, counts and snapshots."""
