"""Floor 4: functions over arrays, what is made of them (derivatives, batches), and what looks into them."""
