"""`transplt convert`: dumps of devices, .h5, .pt and .npy as .npy and text; the configuration of an ACL dump."""
