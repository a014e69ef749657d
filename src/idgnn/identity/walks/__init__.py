"""Exact powers of the adjacency matrix in bounded memory, for one large graph or many small ones at once."""
