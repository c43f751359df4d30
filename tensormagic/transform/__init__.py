"""Floor 2: from graphs to graphs; derivatives, batching, rewriting."""
