import os

os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"

import numpy as np
import torch
import torch_npu  # noqa: F401
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Toy(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, 60, (n, 12), generator=g)
        self.len = torch.randint(6, 13, (n,), generator=g)
        self.y = (self.ids[:, 0] > 32).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        mask = (torch.arange(12) < self.len[i]).long()
        return {"input_ids": self.ids[i] * mask, "attention_mask": mask, "labels": self.y[i]}


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.tensor([1.0, 1.5], device=outputs.logits.device)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, weight=weight)
        return (loss, outputs) if return_outputs else loss


def compute_metrics(p):
    return {"accuracy": float((np.argmax(p.predictions, axis=-1) == p.label_ids).mean())}


def main():
    set_seed(3)
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                        max_position_embeddings=16, num_labels=2)
    model = BertForSequenceClassification(config)
    print("training on", torch.npu.device_count(), "device")
    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=1,
        num_train_epochs=3,
        learning_rate=2e-3,
        weight_decay=0.05,
        warmup_steps=4,
        lr_scheduler_type="cosine",
        max_grad_norm=0.5,
        logging_steps=2,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=3,
    )
    trainer = WeightedTrainer(model=model, args=args, train_dataset=Toy(48, 0), eval_dataset=Toy(24, 1), compute_metrics=compute_metrics)
    trainer.train()
    result = trainer.evaluate()
    print("final eval loss %.5f accuracy %.4f" % (result["eval_loss"], result["eval_accuracy"]))


if __name__ == "__main__":
    main()
