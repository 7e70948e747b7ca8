"""`transplt instrument`: a copy of a training program that records what it computes, for comparing two devices."""
