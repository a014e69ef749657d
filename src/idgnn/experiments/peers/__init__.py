"""The expressive networks beside which Table 6 shows ID-GNN, each from its equations in one file."""
