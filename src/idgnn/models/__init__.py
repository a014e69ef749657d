"""Networks: stacks of identity-aware layers, heads for what is predicted, and the parameter budget."""
