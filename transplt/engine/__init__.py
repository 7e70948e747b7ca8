"""The way of one file: plan, carry out, verify, account."""
