import torch
import torch.nn.functional as F

from pointnet2 import pointnet2_utils


class PointNet(torch.nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.local = torch.nn.Sequential(torch.nn.Conv2d(6, 16, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 1))
        self.head = torch.nn.Linear(32, classes)

    def forward(self, xyz, features):
        chosen = pointnet2_utils.furthest_point_sample(xyz, 16)
        flipped = xyz.transpose(1, 2).contiguous()
        centers = pointnet2_utils.gather_operation(flipped, chosen).transpose(1, 2).contiguous()
        idx = pointnet2_utils.ball_query(0.4, 8, xyz, centers)
        near = pointnet2_utils.grouping_operation(flipped, idx) - centers.transpose(1, 2).unsqueeze(-1)
        grouped = torch.cat([near, pointnet2_utils.grouping_operation(features, idx)], dim=1)
        return self.head(self.local(grouped).max(-1).values.mean(-1))


def main():
    torch.manual_seed(0)
    model = PointNet().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    xyz = torch.rand(8, 128, 3).cuda()
    labels = torch.arange(8).cuda() % 4
    features = (xyz.transpose(1, 2) * (labels + 1).view(8, 1, 1)).contiguous()
    for step in range(8):
        loss = F.cross_entropy(model(xyz, features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
