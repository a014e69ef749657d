"""Networks over several node types: the ready encoder, its layers and heads, and the wrapper of given models."""
