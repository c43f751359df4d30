"""What a compiled program needs while it runs: threads, memory, flags, warnings."""
