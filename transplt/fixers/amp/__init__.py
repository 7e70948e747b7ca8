"""`--amp`: mixed precision for scripts that have none."""
