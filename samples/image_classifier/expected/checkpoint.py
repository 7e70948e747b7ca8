"""Saving and loading training state."""
import os
import random

import numpy as np
import torch
import torch.nn as nn


def unwrap(model):
    return model.module if isinstance(model, nn.DataParallel) else model


def save_checkpoint(path, model, ema, optimizer, scaler, epoch, best, cfg):
    state = {
        'model': unwrap(model).state_dict(),
        'ema': ema.state_dict() if ema is not None else None,
        'optimizer': optimizer.state_dict(),
        'scaler': scaler.state_dict(),
        'epoch': epoch,
        'best': best,
        'config': cfg.to_dict(),
        'rng_state': torch.get_rng_state(),
        'numpy_rng_state': np.random.get_state(),
        'python_rng_state': random.getstate(),
    }
    if torch.npu.is_available():
        state['cuda_rng_state'] = torch.npu.get_rng_state_all()
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    tmp = path + '.tmp'
    torch.save(state, tmp)
    os.replace(tmp, path)


def load_checkpoint(path, device):
    # tensors saved on cuda:0 go to the device of this run
    map_location = {'cuda:0': str(device), 'npu:0': str(device)} if device.type == 'npu' else 'cpu'
    return torch.load(path, map_location=map_location, weights_only=False)


def restore(state, model, ema, optimizer, scaler):
    unwrap(model).load_state_dict(state['model'])
    if ema is not None and state.get('ema') is not None:
        ema.load_state_dict(state['ema'])
    optimizer.load_state_dict(state['optimizer'])
    scaler.load_state_dict(state['scaler'])
    torch.set_rng_state(state['rng_state'].cpu())
    np.random.set_state(state['numpy_rng_state'])
    random.setstate(state['python_rng_state'])
    if torch.npu.is_available() and 'cuda_rng_state' in state:
        torch.npu.set_rng_state_all([s.cpu() for s in state['cuda_rng_state']])
    return state['epoch'] + 1, state['best']
