#!/usr/bin/env python3
"""The table of Lin, Li, Luo, Yan, "Purine: A bi-graph based deep learning framework" (2014), simulated: GoogLeNet on up to
12 GPUs over 10 Gbit/s Ethernet, for several batches of a GPU.

    python3 bench/paper_table.py [--cluster clusters/gpus-2014.toml] [--purine build/release/purine] [--svg FILE]

Three ways to train: the original's, as far as the paper tells it (all gradients of a parameter are gathered in one place, which
updates it and sends it back; what is ready runs in turn; a barrier after each iteration), Purine's as it is now, and with what
`purine plan` finds there. Prints how many times as fast as one GPU with the same batch each is, and draws that for all numbers of
GPUs. docs/simulator.md says what is assumed.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCHES = [128, 64, 56, 48, 40, 32]  # of a GPU
SIZES = range(1, 13)
COLUMNS = [2, 3, 6, 9, 12]  # as the paper's table
GPUS_OF_A_HOST = 3
ORIGINAL = ["--barrier", "--no-priorities", "--set", "parallel.update=one_each", "--set", "parallel.all_reduce=central"]
WAYS = {"original": ORIGINAL, "now": [], "planned": ["--set", "parallel.bucket_kib=4096"]}
PAPER = {128: 12.0, 32: 9.53}  # times one GPU, with 12
PAPER_IMAGES_PER_S = 1383.7  # of 12 GPUs with batch 128


def devices(count):
    """The first GPUs, host by host: `0/sim:0-2,1/sim:0-2`."""
    full, rest = divmod(count, GPUS_OF_A_HOST)
    hosts = [f"{host}/sim:0-{GPUS_OF_A_HOST - 1}" for host in range(full)]
    return ",".join(hosts + ([f"{full}/sim:0-{rest - 1}"] if rest else []))


def simulate(arguments, way, count, batch):
    command = [arguments.purine, "simulate", "googlenet", "--batch", count * batch, "--cluster", arguments.cluster, "--devices",
               devices(count), "--json", *(WAYS[way] if count > 1 else [])]
    output = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(output)["images_per_s"]


def calibrate(arguments):
    """The share of its FLOP/s that a GPU reaches if 12 of them train with batch 128, in the original's way, as fast as the paper
    reports, and then the images/s: of one, and of 12 with batch 32."""
    text = pathlib.Path(arguments.cluster).read_text(encoding="utf-8")
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        def rate(reached, count, batch):
            file.seek(0)
            file.truncate()
            file.write(re.sub(r"(\[gpu\.\w+\]\n(?:.*\n)*?reached = )\S+", rf"\g<1>{reached:.5f}", text))
            file.flush()
            return simulate(argparse.Namespace(purine=arguments.purine, cluster=file.name), "original", count, batch)

        low, high = 0.1, 1.0
        for _ in range(14):
            middle = (low + high) / 2
            low, high = (middle, high) if rate(middle, 12, 128) < PAPER_IMAGES_PER_S else (low, middle)
        return middle, rate(middle, 1, 128), rate(middle, 12, 32)


def draw(path, speed_ups):
    """Speed-up by number of GPUs: a line for each way and for the largest and the smallest batch."""
    width, height, left, top = 640, 420, 60, 20
    right, bottom = width - 190, height - 50

    def x(gpus):
        return left + (right - left) * gpus / SIZES[-1]

    def y(times):
        return bottom - (bottom - top) * times / SIZES[-1]

    colours = {("original", 128): "#c2410c", ("original", 32): "#f59e0b", ("now", 128): "#1d4ed8", ("now", 32): "#0ea5e9",
               ("planned", 128): "#15803d", ("planned", 32): "#65a30d"}
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="13">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for tick in range(0, SIZES[-1] + 1, 3):
        parts.append(f'<line x1="{left}" y1="{y(tick):.1f}" x2="{right}" y2="{y(tick):.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 10}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>'
                     f'<text x="{x(tick):.1f}" y="{bottom + 20}" text-anchor="middle">{tick}</text>')
    parts.append(f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(12)}" y2="{y(12)}" stroke="#999" stroke-dasharray="4 4"/>')
    for (way, batch), colour in colours.items():
        points = " ".join(f"{x(size):.1f},{y(speed_ups[way, size, batch]):.1f}" for size in SIZES)
        last = y(speed_ups[way, SIZES[-1], batch])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(12)}" cy="{last:.1f}" r="3" fill="{colour}"/>')
    for row, ((way, batch), colour) in enumerate(colours.items()):
        parts.append(f'<text x="{right + 15}" y="{top + 20 + 20 * row}" fill="{colour}">{way}, batch {batch}: '
                     f'{speed_ups[way, 12, batch]:.2f}</text>')
    for row, (batch, times) in enumerate(PAPER.items()):
        parts.append(f'<circle cx="{x(12)}" cy="{y(times):.1f}" r="5" fill="none" stroke="black"/>'
                     f'<text x="{right + 15}" y="{top + 150 + 20 * row}">paper, batch {batch}: {times:.2f}</text>')
    parts.append(f'<text x="{(left + right) / 2}" y="{height - 10}" text-anchor="middle">GPUs</text>'
                 f'<text x="15" y="{(top + bottom) / 2}" text-anchor="middle" transform="rotate(-90 15 {(top + bottom) / 2})">'
                 "times one GPU</text></svg>")
    pathlib.Path(path).write_text("\n".join(parts) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cluster", default=ROOT / "clusters" / "gpus-2014.toml")
    parser.add_argument("--purine", type=os.path.abspath, default=ROOT / "build" / "release" / "purine")
    parser.add_argument("--svg", help="draw a plot")
    arguments = parser.parse_args()
    speed_ups = {}
    print("| way | batch of a GPU | images/s of one | " + " | ".join(f"{size} GPUs" for size in COLUMNS) + " | paper, 12 |")
    print("|---|---|---" + "|---" * len(COLUMNS) + "|---|")
    for way in WAYS:
        for batch in BATCHES:
            rates = {size: simulate(arguments, way, size, batch) for size in SIZES}
            for size in SIZES:
                speed_ups[way, size, batch] = rates[size] / rates[1]
            paper = f"{PAPER[batch]:.2f}" if way == "original" and batch in PAPER else ""
            print(f"| {way} | {batch} | {rates[1]:.1f} | " +
                  " | ".join(f"{speed_ups[way, size, batch]:.2f}" for size in COLUMNS) + f" | {paper} |", flush=True)
    reached, one, small = calibrate(arguments)
    print(f"\nA GPU that reaches {reached:.1%} of its FLOP/s trains at {one:.1f} images/s; 12 of them with batch 128, in the original's way, at "
          f"{PAPER_IMAGES_PER_S:.1f}, as in the paper; with batch 32 at {small:.1f}, and the paper's {PAPER[32]} times are "
          f"{PAPER[32] * PAPER_IMAGES_PER_S / PAPER[128]:.1f}.")
    if arguments.svg:
        draw(arguments.svg, speed_ups)


if __name__ == "__main__":
    main()
