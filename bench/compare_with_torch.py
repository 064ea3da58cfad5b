#!/usr/bin/env python3
"""Training throughput and peak memory of Purine beside PyTorch's, in turn in one run on one machine.

    python3 bench/compare_with_torch.py [--models lenet,nin,googlenet,alexnet] [--rounds 3] [--steps 8]
                                        [--configurations eager,channels_last,compiled,compiled_channels_last]
                                        [--purine build/release/purine] [--json FILE]

First PyTorch's training step is tried in each configuration (compiled: by torch.compile); the fastest is the rival.
Each round then runs `purine bench` and the rival for the same network, batch and number of threads, each in a process
of its own. Both use synthetic images, random weights, and SGD with momentum: forward, loss, backward, update. Prints
a line a network: images per second of both (medians over rounds), their ratio (median of the rounds' ratios, with the
least and the largest), the peak resident memory of both processes (of PyTorch's configuration that needs the least),
and what each configuration did. Needs torch and torchvision for the Python that runs it (Debian: python3-torch,
python3-torchvision).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

NETWORKS = {  # name: (batch, channels, size, classes, name in `purine bench`)
    "lenet": (64, 1, 28, 10, "lenet"),
    "nin": (64, 3, 32, 10, "network_in_network"),
    "googlenet": (32, 3, 224, 1000, "googlenet_bn"),
    "alexnet": (32, 3, 224, 1000, "alexnet"),
    "vgg16": (16, 3, 224, 1000, "vgg16"),
    "resnet50": (16, 3, 224, 1000, "resnet50"),
}


def torch_network(name, classes):
    import torch.nn as nn

    if name == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, classes))
    if name == "nin":
        layers = []

        def block(inputs, outputs, kernel, padding):
            layers.extend([nn.Conv2d(inputs, outputs, kernel, padding=padding), nn.ReLU()])

        block(3, 192, 5, 2), block(192, 160, 1, 0), block(160, 96, 1, 0)
        layers.extend([nn.MaxPool2d(3, 2, ceil_mode=True), nn.Dropout(0.5)])
        block(96, 192, 5, 2), block(192, 192, 1, 0), block(192, 192, 1, 0)
        layers.extend([nn.AvgPool2d(3, 2, ceil_mode=True), nn.Dropout(0.5)])
        block(192, 192, 3, 1), block(192, 192, 1, 0), block(192, classes, 1, 0)
        layers.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        return nn.Sequential(*layers)
    import torchvision

    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    return getattr(torchvision.models, name)(weights=None, num_classes=classes, **options)


def run_torch(arguments):
    """The worker: times PyTorch's training step, prints one JSON line."""
    import resource

    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    batch, channels, size, classes, _ = NETWORKS[arguments.torch_worker]
    network = torch_network(arguments.torch_worker, classes).train()
    images = torch.randn(batch, channels, size, size)
    labels = torch.randint(0, classes, (batch,))
    if arguments.channels_last:
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    if arguments.compiled:
        network = torch.compile(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    seconds = []
    for step in range(2 + arguments.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss_of(network(images), labels).backward()
        optimizer.step()
        if step >= 2:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({
        "images_per_s_median": batch / statistics.median(seconds),
        "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "torch": torch.__version__,
    }))


def run(command):
    """Runs a command; gives its last line as JSON and its peak resident memory."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed with status {status}")
    result = json.loads(output.strip().splitlines()[-1])
    result["peak_resident_bytes"] = usage.ru_maxrss * 1024
    result["seconds"] = time.perf_counter() - before
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="lenet,nin,googlenet,alexnet")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--configurations", default=None,
                        help="of PyTorch; default: eager,channels_last, and both compiled where it can")
    parser.add_argument("--purine", default="build/release/purine")
    parser.add_argument("--json", help="write all measurements to this file")
    parser.add_argument("--torch-worker", choices=NETWORKS, help=argparse.SUPPRESS)
    parser.add_argument("--channels-last", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch_worker:
        run_torch(arguments)
        return
    if arguments.configurations is None:
        # In a process of its own: what this one holds when it starts another counts into that one's peak memory.
        probe = [sys.executable, "-c", "import torch; print(torch.__version__, hasattr(torch, 'compile'))"]
        version, can_compile = subprocess.run(probe, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        arguments.configurations = "eager,channels_last" + ",compiled,compiled_channels_last" * (can_compile == "True")
        print(f"PyTorch {version}: {arguments.configurations}", flush=True)
    configurations = arguments.configurations.split(",")
    models = arguments.models.split(",")
    unknown = [name for name in models if name not in NETWORKS]
    if unknown:
        parser.error(f"there is no network {unknown[0]}; there are {', '.join(NETWORKS)}")
    measurements = []
    print(f"{'network':<12}{'batch':>6}{'purine/s':>11}{'torch/s':>11}{'ratio':>8}{'(range)':>16}"
          f"{'purine MiB':>12}{'torch MiB':>11}{'memory':>8}  PyTorch's configurations")
    for name in models:
        batch = NETWORKS[name][0]
        # Small networks need more steps for times that mean something.
        steps = arguments.steps * {28: 100, 32: 6}.get(NETWORKS[name][2], 1)
        worker = [sys.executable, os.path.abspath(__file__), "--torch-worker", name, "--steps", str(steps),
                  "--threads", str(arguments.threads)]
        trials = {}
        for configuration in configurations:
            flags = ["--channels-last"] * ("channels_last" in configuration) + ["--compiled"] * ("compiled" in configuration)
            trials[configuration] = (run(worker + flags), flags)
        best = max(trials, key=lambda configuration: trials[configuration][0]["images_per_s_median"])
        rows = []
        for _ in range(arguments.rounds):
            ours = run([arguments.purine, "bench", NETWORKS[name][4], "--batch", str(batch), "--steps", str(steps),
                        "--workers", str(arguments.threads), "--json"])
            rows.append((ours, run(worker + trials[best][1])))
        ratios = [ours["images_per_s_median"] / theirs["images_per_s_median"] for ours, theirs in rows]
        speed = statistics.median(ours["images_per_s_median"] for ours, _ in rows)
        torch_speed = statistics.median(theirs["images_per_s_median"] for _, theirs in rows)
        memory = statistics.median(ours["peak_resident_bytes"] for ours, _ in rows) / 2**20
        torch_memory = min(result["peak_resident_bytes"] for result, _ in trials.values()) / 2**20
        print(f"{name:<12}{batch:>6}{speed:>11.2f}{torch_speed:>11.2f}{statistics.median(ratios):>8.2f}"
              f"{f'{min(ratios):.2f}-{max(ratios):.2f}':>16}{memory:>12.0f}{torch_memory:>11.0f}"
              f"{memory / torch_memory:>8.2f}  " +
              ", ".join(f"{key} {result['images_per_s_median']:.2f}" for key, (result, _) in trials.items()), flush=True)
        measurements.append({"network": name, "batch": batch, "trials": trials, "rival": best, "rounds": rows})
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(measurements, file, indent=1)


if __name__ == "__main__":
    main()
