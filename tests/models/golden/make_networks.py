#!/usr/bin/python3
"""Makes networks.json: logits and gradients of PyTorch's networks for weights and images made by a formula.

Run: tests/models/golden/make_networks.py > tests/models/golden/networks.json
(Debian's python3-torch and python3-torchvision)
"""
import json
import math

import torch
import torch.nn as nn
import torchvision

CLASSES = 7


def values(shape, order):
    """Numbers from -1 to 1 that both sides can make: `order` tells tensors apart."""
    index = torch.arange(math.prod(shape), dtype=torch.int64)
    return (((index * 7919 + order * 104729) % 1009).double() / 504 - 1).reshape(shape)


def fill(net):
    """Gives the parameters and statistics, in the order in which they are made, their values."""
    order = 0
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if name.endswith("num_batches_tracked"):
                continue
            order += 1
            value = values(list(tensor.shape), order)
            if tensor.dim() > 1:
                tensor.copy_(value * math.sqrt(6 / (tensor[0].numel())))
            elif name.endswith("running_var") or (name.endswith("weight")):
                tensor.copy_(1 + value / 4)
            else:
                tensor.copy_(value / 10)


def convolution(inputs, outputs, kernel, **options):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, **options), nn.ReLU())


def lenet():
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, CLASSES))


def network_in_network():
    def block(inputs, channels, kernel):
        return nn.Sequential(convolution(inputs, channels[0], kernel, padding=kernel // 2),
                             convolution(channels[0], channels[1], 1), convolution(channels[1], channels[2], 1))
    return nn.Sequential(block(3, (192, 160, 96), 5), nn.MaxPool2d(3, 2, ceil_mode=True),
                         block(96, (192, 192, 192), 5), nn.AvgPool2d(3, 2, ceil_mode=True),
                         block(192, (192, 192, CLASSES), 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Inception(nn.Module):
    def __init__(self, inputs, direct, reduce3, conv3, reduce5, conv5, projection):
        super().__init__()
        self.direct = convolution(inputs, direct, 1)
        self.middle = nn.Sequential(convolution(inputs, reduce3, 1), convolution(reduce3, conv3, 3, padding=1))
        self.large = nn.Sequential(convolution(inputs, reduce5, 1), convolution(reduce5, conv5, 5, padding=2))
        self.pooled = nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(inputs, projection, 1))

    def forward(self, x):
        return torch.cat([self.direct(x), self.middle(x), self.large(x), self.pooled(x)], 1)


def googlenet():
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    norm = nn.LocalResponseNorm(5, 1e-4, 0.75, 1)
    return nn.Sequential(
        convolution(3, 64, 7, stride=2, padding=3), pool, norm, convolution(64, 64, 1),
        convolution(64, 192, 3, padding=1), norm, pool,
        Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), pool,
        Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64),
        Inception(512, 128, 128, 256, 24, 64, 64), Inception(512, 112, 144, 288, 32, 64, 64),
        Inception(528, 256, 160, 320, 32, 128, 128), pool,
        Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, CLASSES))


def classifier(features):
    return [nn.Flatten(), nn.Linear(features, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, CLASSES)]


def alexnet_grouped():
    norm, pool = nn.LocalResponseNorm(5, 5e-4, 0.75, 2), nn.MaxPool2d(3, 2)
    return nn.Sequential(
        convolution(3, 96, 11, stride=4), norm, pool, convolution(96, 256, 5, padding=2, groups=2), norm, pool,
        convolution(256, 384, 3, padding=1), convolution(384, 384, 3, padding=1, groups=2),
        convolution(384, 256, 3, padding=1, groups=2), pool, *classifier(256))


def run(net, shape, training=False):
    torch.manual_seed(0)
    net = net.float()
    fill(net)
    net.train(training)
    image = values(shape, 1000).float()
    label = torch.arange(shape[0]) % CLASSES
    logits = net(image)
    loss = nn.functional.cross_entropy(logits, label)
    loss.backward()
    parameters = list(net.parameters())
    result = {"image": shape, "training": training, "logits": logits.flatten().tolist(), "loss": loss.item(),
              "gradient_norms": [p.grad.double().norm().item() for p in parameters],
              "first_gradient": parameters[0].grad.flatten()[:10].tolist()}
    if training:
        result["running"] = [value.double().norm().item() for name, value in net.state_dict().items()
                             if "running" in name]
    return result


def main():
    resnet18 = lambda: torchvision.models.resnet18(num_classes=CLASSES)
    # Small images, so that the first fully connected layers are small too.
    cases = {
        "alexnet": run(nn.Sequential(torchvision.models.alexnet().features, *classifier(256)), [2, 3, 63, 63]),
        "alexnet_grouped": run(alexnet_grouped(), [2, 3, 67, 67]),
        "vgg16": run(nn.Sequential(torchvision.models.vgg16().features, *classifier(512)), [2, 3, 32, 32]),
        "lenet": run(lenet(), [3, 1, 28, 28]),
        "network_in_network": run(network_in_network(), [2, 3, 32, 32]),
        "googlenet": run(googlenet(), [2, 3, 64, 64]),
        "googlenet_bn": run(torchvision.models.googlenet(num_classes=CLASSES, aux_logits=False, init_weights=False),
                            [2, 3, 64, 64]),
        "resnet18": run(resnet18(), [2, 3, 64, 64]),
        "resnet18_training": run(resnet18(), [4, 3, 64, 64], training=True),
        "resnet50": run(torchvision.models.resnet50(num_classes=CLASSES), [2, 3, 64, 64]),
    }
    rounded = json.loads(json.dumps(cases), parse_float=lambda text: float(f"{float(text):.7g}"))
    print("{\n" + ",\n".join(f'  "{name}": {json.dumps(case)}' for name, case in rounded.items()) + "\n}")


if __name__ == "__main__":
    main()
