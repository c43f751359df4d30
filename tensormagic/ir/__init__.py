"""Floor 0: types, nodes, graphs, rules and text; what everything else is built on."""
