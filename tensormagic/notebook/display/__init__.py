"""What a cell shows: the line, panels, progress."""
