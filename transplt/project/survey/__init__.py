"""`transplt survey`: many repositories, each analysed by itself, as one portfolio."""
