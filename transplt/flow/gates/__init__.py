"""Gates: conditions on the device, and what only the side of CUDA reaches."""
