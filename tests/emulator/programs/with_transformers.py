"""transformers.Trainer in fp16 and GPT-2, with random weights; alone or on two ranks."""

import math
import os
import sys
import tempfile

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)
from transformers.utils import is_torch_npu_available

assert is_torch_npu_available()


class DS(torch.utils.data.Dataset):
    def __len__(s):
        return 16

    def __getitem__(s, i):
        g = torch.Generator().manual_seed(i)
        return {
            "input_ids": torch.randint(0, 100, (12,), generator=g),
            "attention_mask": torch.ones(12, dtype=torch.long),
            "labels": torch.tensor(i % 2),
        }


cfg = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
m = BertForSequenceClassification(cfg)
a = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=4,
    num_train_epochs=1,
    logging_steps=1,
    report_to=[],
    fp16=True,
    save_strategy="epoch",
    dataloader_num_workers=0,
)
rank = int(os.environ.get("LOCAL_RANK", 0))
assert a.device == torch.device("npu", rank) and a.n_gpu == 1, (a.device, a.n_gpu)
t = Trainer(model=m, args=a, train_dataset=DS(), eval_dataset=DS())
r = t.train()
e = t.evaluate()["eval_loss"]
assert next(m.parameters()).device.type == "npu" and math.isfinite(r.training_loss) and math.isfinite(e)
g = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)).npu()
x = torch.randint(0, 100, (2, 8)).npu()
loss = g(input_ids=x, labels=x).loss
loss.backward()
s = tuple(g.generate(x, max_new_tokens=5, do_sample=True, pad_token_id=0, eos_token_id=None).shape)
assert s == (2, 13), s
sys.stdout.write(
    f"transformers rank {rank}: ok, train loss {r.training_loss:.3f}, eval loss {e:.3f}, gpt2 loss {loss.item():.3f}\n"
)
sys.stdout.flush()
