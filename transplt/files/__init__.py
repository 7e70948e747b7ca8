"""What is not Python."""
