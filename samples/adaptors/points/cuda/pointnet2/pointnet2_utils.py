import torch
from torch.autograd import Function

try:
    import pointnet2._ext as _ext
except ImportError:
    raise ImportError("build the extension first: python pointnet2/setup.py install")


class FurthestPointSampling(Function):
    @staticmethod
    def forward(ctx, xyz, count):
        chosen = _ext.furthest_point_sampling(xyz, count)
        ctx.mark_non_differentiable(chosen)
        return chosen

    @staticmethod
    def backward(ctx, grad=None):
        return None, None


class GatherOperation(Function):
    @staticmethod
    def forward(ctx, features, idx):
        ctx.saved = idx, features.size(2)
        return _ext.gather_points(features, idx)

    @staticmethod
    def backward(ctx, grad):
        idx, count = ctx.saved
        return _ext.gather_points_grad(grad.contiguous(), idx, count), None


class GroupingOperation(Function):
    @staticmethod
    def forward(ctx, features, idx):
        ctx.saved = idx, features.size(2)
        return _ext.group_points(features, idx)

    @staticmethod
    def backward(ctx, grad):
        idx, count = ctx.saved
        return _ext.group_points_grad(grad.contiguous(), idx, count), None


class BallQuery(Function):
    @staticmethod
    def forward(ctx, radius, count, xyz, new_xyz):
        found = _ext.ball_query(new_xyz, xyz, radius, count)
        ctx.mark_non_differentiable(found)
        return found

    @staticmethod
    def backward(ctx, grad=None):
        return None, None, None, None


furthest_point_sample = FurthestPointSampling.apply
gather_operation = GatherOperation.apply
grouping_operation = GroupingOperation.apply
ball_query = BallQuery.apply
