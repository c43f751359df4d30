"""Vector math: elementary functions as formulas that LLVM vectorises."""
