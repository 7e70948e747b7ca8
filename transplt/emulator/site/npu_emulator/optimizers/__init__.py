"""The fused optimizers, tensor by tensor after the same formulas: for the hand-made torch_npu and for apex."""
