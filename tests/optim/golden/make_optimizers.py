#!/usr/bin/python3
"""Makes optimizers.json: what PyTorch's optimisers make of a small linear regression in five steps.

Run: tests/optim/golden/make_optimizers.py > tests/optim/golden/optimizers.json  (Debian's python3-torch)
"""
import json

import torch

STEPS = 5


def values(count, scale, shift):
    """Plain numbers that both sides can make: no random generator to agree on."""
    return [scale * (((i * 7 + shift) % 11) - 5) / 5 for i in range(count)]


def tensor(shape, scale, shift):
    count = 1
    for extent in shape:
        count *= extent
    return torch.tensor(values(count, scale, shift), dtype=torch.float64).reshape(shape)


def run(make, rate=None, clip_value=0, clip_norm=0):
    x = tensor([6, 3], 1.0, 3)
    target = tensor([6, 2], 2.0, 5)
    weight = tensor([2, 3], 0.5, 1).requires_grad_()
    bias = tensor([2], 0.25, 2).requires_grad_()
    optimizer = make(weight, bias)
    losses, norms = [], []
    for step in range(STEPS):
        if rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = rate(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(torch.nn.functional.linear(x, weight, bias), target)
        loss.backward()
        if clip_value:
            torch.nn.utils.clip_grad_value_([weight, bias], clip_value)
        if clip_norm:
            norms.append(torch.nn.utils.clip_grad_norm_([weight, bias], clip_norm).item())
        optimizer.step()
        losses.append(loss.item())
    result = {"losses": losses, "weight": weight.flatten().tolist(), "bias": bias.tolist()}
    if norms:
        result["norms"] = norms
    return result


def decayed(decay):
    """Decay of the weight, not of the bias."""
    return lambda weight, bias: [{"params": [weight], "weight_decay": decay},
                                 {"params": [bias], "weight_decay": 0}]


def sgd(decay=0, **options):
    return lambda w, b: torch.optim.SGD(decayed(decay)(w, b), lr=0.125, **options)


def main():
    cases = {
        "sgd": run(sgd()),
        "sgd_decay": run(sgd(decay=0.1)),
        "sgd_step": run(sgd(), rate=lambda t: 0.125 * (t + 1) / 2 if t < 2 else 0.125 * 0.5 ** ((t - 2) // 2)),
        "sgd_clip_value": run(sgd(), clip_value=0.3),
        "sgd_clip_norm": run(sgd(), clip_norm=0.5),
        "sgd_clip_norm_not_reached": run(sgd(), clip_norm=100.0),
        "momentum": run(sgd(momentum=0.9)),
        "momentum_decay": run(sgd(decay=0.1, momentum=0.8)),
        "nesterov": run(sgd(decay=0.1, momentum=0.9, nesterov=True)),
        "adam": run(lambda w, b: torch.optim.Adam(decayed(0)(w, b), lr=0.0625)),
        "adam_decay": run(lambda w, b: torch.optim.Adam(decayed(0.1)(w, b), lr=0.0625, betas=(0.8, 0.95),
                                                        eps=1e-6)),
        "adamw": run(lambda w, b: torch.optim.AdamW(decayed(0.1)(w, b), lr=0.0625)),
    }
    lines = [f'  "{name}": {json.dumps(case)}' for name, case in cases.items()]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
