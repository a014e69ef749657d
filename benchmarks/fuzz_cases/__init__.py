"""Cases of the soak. Each draws graphs, models, options or faults, and checks what comes out against a second way.

A case returns what it was (for the table of figures), and raises if an answer is wrong or an error is no sentence.
"""
