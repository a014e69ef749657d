"""What is asked: of nodes, of pairs of nodes, of graphs; what an answer costs, and how answers are measured."""
