"""`transplt loss`: the loss curves of two logs, read, aligned and judged."""
