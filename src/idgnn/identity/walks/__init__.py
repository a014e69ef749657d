"""How walks are counted: exactly, in bounded memory, for one large graph or many small ones at once."""
