"""What a cell costs and how fast it is: operations and bytes counted from the plan, the machine, times, and their picture."""
