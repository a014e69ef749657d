"""One round of heterogeneous message passing, and the wrapper that gives it to any network."""
