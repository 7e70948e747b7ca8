"""Write text with a trained model."""

from __future__ import annotations

import argparse

import torch
import torch_npu  # noqa: F401

from textgen.corpus import Vocabulary
from textgen.model import ModelConfig, TextModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", default="runs/text/last.pt")
    parser.add_argument("--prompt", default="the ")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--gpu", type=int, default=0, help="-1: CPU")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    use_cuda = args.gpu >= 0 and torch.npu.is_available()
    device = torch.device("npu:{}".format(args.gpu) if use_cuda else "cpu")
    torch.manual_seed(args.seed)
    if use_cuda:
        torch.npu.manual_seed(args.seed)

    state = torch.load(args.checkpoint, map_location="cpu", weights_only=False)
    vocabulary = Vocabulary("".join(state["vocabulary"]))
    settings = state["args"]
    model = TextModel(
        ModelConfig(
            len(vocabulary), settings["block"], settings["layers"], settings["heads"], settings["width"], 0.0, settings["flash"]
        )
    )
    model.load_state_dict(state["model"])
    model = model.npu(args.gpu) if use_cuda else model
    model.eval()

    prompt = vocabulary.encode(args.prompt).unsqueeze(0).to(device)
    ids = model.generate(prompt, args.count, args.temperature)
    print(vocabulary.decode(ids[0].tolist()))


if __name__ == "__main__":
    main()
