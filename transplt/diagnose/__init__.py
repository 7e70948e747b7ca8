"""What logs of a training on NPUs say: errors that are known, their order, and what to do; and what a host has."""
