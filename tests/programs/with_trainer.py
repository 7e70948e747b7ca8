# distributed: left
# start: no (the package is missing)
import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"input_ids": torch.full((6,), i % 20), "labels": torch.tensor(i % 2)}


def main():
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
    args = TrainingArguments(output_dir="out", num_train_epochs=2, per_device_train_batch_size=8, fp16=True)
    trainer = Trainer(model=model, args=args, train_dataset=Texts())
    trainer.train()
    trainer.save_model("out/last")


if __name__ == "__main__":
    main()
