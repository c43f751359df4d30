"""What reverse mode saves, and how it goes backwards through loops."""
