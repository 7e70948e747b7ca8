import os
import torch
import torch.distributed as dist


def is_dist_avail_and_initialized():
    return dist.is_available() and dist.is_initialized()


def get_world_size():
    return dist.get_world_size() if is_dist_avail_and_initialized() else 1


def is_main_process():
    return (dist.get_rank() if is_dist_avail_and_initialized() else 0) == 0


def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)


def reduce_value(value):
    if get_world_size() < 2:
        return value
    dist.all_reduce(value)
    return value / get_world_size()


def init_distributed_mode(args):
    if 'RANK' not in os.environ:
        print('Not using distributed mode')
        args.distributed = False
        return
    args.distributed = True
    args.gpu = int(os.environ['LOCAL_RANK'])
    torch.cuda.set_device(args.gpu)
    dist.init_process_group(backend='nccl', init_method='env://')
    dist.barrier()
