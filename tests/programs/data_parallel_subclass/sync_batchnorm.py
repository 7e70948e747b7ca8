from torch.nn import BatchNorm1d
from torch.nn.parallel.data_parallel import DataParallel


class SynchronizedBatchNorm1d(BatchNorm1d):
    def __data_parallel_replicate__(self, ctx, copy_id):
        self._is_parallel = True


class DataParallelWithCallback(DataParallel):
    def replicate(self, module, device_ids):
        modules = super().replicate(module, device_ids)
        for i, replica in enumerate(modules):
            for m in replica.modules():
                if hasattr(m, "__data_parallel_replicate__"):
                    m.__data_parallel_replicate__(None, i)
        return modules
