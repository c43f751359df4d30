"""Pictures of functions of a few numbers. They know numbers, and no widgets."""
