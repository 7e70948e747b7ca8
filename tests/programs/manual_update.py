# distributed: refused or converts (parameters are changed without an optimizer, by a loop of its own)
# same with W processes: no (every rank sees all of the data)
# amp: refused (parameters are changed without an optimizer)
from itertools import count

import torch
import torch.nn.functional as F

POLY_DEGREE = 4
gen = torch.Generator().manual_seed(0)
W_target = torch.randn(POLY_DEGREE, 1, generator=gen) * 5


def get_batch(batch_size=32):
    random = torch.randn(batch_size).unsqueeze(1)
    x = torch.cat([random ** i for i in range(1, POLY_DEGREE + 1)], 1)
    return x.cuda(), x.mm(W_target).cuda()


fc = torch.nn.Linear(POLY_DEGREE, 1).cuda()
for batch_idx in count(1):
    batch_x, batch_y = get_batch()
    fc.zero_grad()
    output = F.smooth_l1_loss(fc(batch_x), batch_y)
    loss = output.item()
    output.backward()
    for param in fc.parameters():
        param.data.add_(-0.1 * param.grad)
    if loss < 1e-3 or batch_idx >= 10:
        break
print('Loss: {:.6f} after {} batches'.format(loss, batch_idx))
