"""Where lazy arrays live, and stores into them: places, views, aliases."""
