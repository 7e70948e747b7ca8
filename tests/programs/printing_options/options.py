import argparse
import os
import torch


class BaseOptions():
    def __init__(self):
        self.isTrain = True

    def initialize(self, parser):
        parser.add_argument('--batchSize', type=int, default=1)
        parser.add_argument('--niter', type=int, default=100)
        parser.add_argument('--lr', type=float, default=0.05)
        parser.add_argument('--gpu_ids', type=str, default='0', help='gpu ids: e.g. 0  0,1,2. use -1 for CPU')
        parser.add_argument('--print_freq', type=int, default=16)
        parser.add_argument('--checkpoints_dir', type=str, default='./checkpoints')
        return parser

    def print_options(self, opt):
        message = '----------------- Options ---------------\n'
        for k, v in sorted(vars(opt).items()):
            message += '{:>25}: {:<30}\n'.format(str(k), str(v))
        message += '----------------- End -------------------'
        print(message)
        os.makedirs(opt.checkpoints_dir, exist_ok=True)
        with open(os.path.join(opt.checkpoints_dir, 'opt.txt'), 'wt') as opt_file:
            opt_file.write(message)

    def parse(self):
        opt = self.initialize(argparse.ArgumentParser()).parse_args()
        opt.isTrain = self.isTrain
        self.print_options(opt)
        str_ids = opt.gpu_ids.split(',')
        opt.gpu_ids = [int(i) for i in str_ids if int(i) >= 0]
        if len(opt.gpu_ids) > 0:
            torch.cuda.set_device(opt.gpu_ids[0])
        opt.device = torch.device('cuda:{}'.format(opt.gpu_ids[0])) if opt.gpu_ids else torch.device('cpu')
        return opt


class TrainOptions(BaseOptions):
    pass


class TestOptions(BaseOptions):
    def __init__(self):
        self.isTrain = False
