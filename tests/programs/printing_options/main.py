# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batchSize {batch} --niter 2
# then: test.py --niter 1
import torch
from options import TrainOptions
from data import create_dataset
from models import create_model

if __name__ == '__main__':
    opt = TrainOptions().parse()
    dataset = create_dataset(opt)
    print('The number of training images = %d' % len(dataset.dataset))
    model, criterion = create_model(opt)
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr)
    total_iters = 0
    for epoch in range(1, opt.niter + 1):
        for data in dataset:
            x, y = data[0].to(opt.device), data[1].to(opt.device)
            total_iters += opt.batchSize
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            if total_iters % opt.print_freq == 0:
                print(epoch, total_iters, float(loss))
        torch.save(model.state_dict(), '%s/latest_net.pth' % opt.checkpoints_dir)
