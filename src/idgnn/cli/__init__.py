"""The command `idgnn`: a verb a file, each a few lines over one function of the library."""
