"""Plans: which nodes are stored, which are fused into one kernel, and which arrays are used again. Prints and runs nothing."""
