"""What a migration writes only on request: many cards, mixed precision, tunings."""
