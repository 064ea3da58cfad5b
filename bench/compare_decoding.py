#!/usr/bin/env python3
"""Images decoded and augmented in a second by one core, beside torchvision's.

  bench/compare_decoding.py FOLDER [--purine build/release] [--seconds 3] [--rounds 3]

FOLDER holds folders of images. Each round runs bench_decode and then, in the same process as this script, torchvision's
RandomResizedCrop(224), RandomHorizontalFlip, ToTensor and Normalize on what Pillow decodes, and Resize(256), CenterCrop(224)
and so on. Processor time of one thread counts, after a round over all images. Needs PyTorch, torchvision and Pillow.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import time

import torch
import torchvision.transforms as transforms
from PIL import Image

KINDS = {"training": "decoded, random_resized to 224, flipped", "evaluation": "decoded, resized to 256, central 224"}


def ours(program, folder, seconds):
    text = subprocess.run([program, folder, str(seconds)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {kind: float(re.search(rf"^{re.escape(line)} +([\d.]+) images/s", text, re.MULTILINE)[1])
            for kind, line in KINDS.items()}


def rival(files, seconds):
    last = [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    chains = {"training": transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), *last]),
              "evaluation": transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), *last])}
    rates = {}
    for kind, chain in chains.items():
        def load(file, chain=chain):
            with Image.open(file) as image:
                chain(image.convert("RGB"))
        for file in files:
            load(file)
        begin = time.process_time()
        done = 0
        while time.process_time() - begin < seconds:
            load(files[done % len(files)])
            done += 1
        rates[kind] = done / (time.process_time() - begin)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--purine", default="build/release", help="the build folder")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    program = pathlib.Path(arguments.purine) / "bench" / "bench_decode"
    files = sorted(path for path in pathlib.Path(arguments.folder).rglob("*")
                   if path.suffix.lower() in (".jpg", ".jpeg", ".png") and not path.name.startswith("."))
    pairs = [(ours(program, arguments.folder, arguments.seconds), rival(files, arguments.seconds))
             for _ in range(arguments.rounds)]
    print(f"{len(files)} images; images a second of one core, median of {arguments.rounds} rounds")
    for kind in KINDS:
        first, second = (statistics.median(pair[i][kind] for pair in pairs) for i in (0, 1))
        ratios = sorted(a[kind] / b[kind] for a, b in pairs)
        print(f"{kind:<11} purine {first:7.1f}   torchvision {second:7.1f}   ratio {statistics.median(ratios):.2f} "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
