"""The idea of the paper as pure tensor functions: counts, identity graphs, ego networks."""
