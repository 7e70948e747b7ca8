import torch
from options import TestOptions
from data import create_dataset
from models import create_model

if __name__ == '__main__':
    opt = TestOptions().parse()
    dataset = create_dataset(opt)
    model, criterion = create_model(opt)
    model.load_state_dict(torch.load('%s/latest_net.pth' % opt.checkpoints_dir, map_location='cpu'))
    model.eval()
    with torch.no_grad():
        for x, y in dataset:
            print(criterion(model(x.to(opt.device)), y.to(opt.device)).item())
