"""The algebra of sums that rules for accuracy are made of: terms, series, forms. Knows no rules."""
