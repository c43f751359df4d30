"""Pictures of graphs: scenes, their layout, and what is drawn of them. Knows no IPython."""
