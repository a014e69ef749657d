"""Relational data: tables with keys, as one heterogeneous graph with times."""
