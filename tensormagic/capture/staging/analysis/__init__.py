"""What the text of a function says before it runs: whether Python may run it, and what rules would see in it."""
