"""Floor 1: the operations, each a record of a kind."""
