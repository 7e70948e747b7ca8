"""`transplt port`: a migration as a branch of small commits."""
