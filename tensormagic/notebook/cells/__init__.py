"""Running a cell: capture, names that it binds, what it leaves when it fails."""
