"""Rules, and the driver that applies them."""
