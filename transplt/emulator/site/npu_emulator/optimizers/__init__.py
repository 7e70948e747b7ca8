"""The fused optimizers, tensor by tensor after the same formulas: as apex for NPUs has them."""
