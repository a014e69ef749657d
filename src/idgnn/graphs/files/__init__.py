"""A user's own graphs: tables of edges, nodes and graphs, GraphML and GML, one file or a folder of them."""
