"""Exact embeddings of a graph of any size, some queries at a time, within a stated amount of memory."""
