#!/usr/bin/env python3
"""Processor time of a training step with convolutions by the fastest algorithm, beside plain sums.

    python3 bench/compare_convolutions.py [--rounds 3] [--purine build/release/purine] [MODEL:BATCH …]

Each round runs `purine bench --convolutions direct` and `--convolutions fastest` in turn, each with few and with more
steps; the difference of the processes' user time, divided by the difference of steps, is a step without what precedes the
first. Processor time, unlike the clock, also says something on a machine that others use. Prints a line a network: seconds
of all threads together (medians over rounds) and the ratio (median, with the least and the largest).
"""
import argparse

import processor_time

FEW, MORE = 1, 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL:BATCH", default=[
        "googlenet_bn:32", "googlenet:32", "network_in_network:64", "resnet18:16", "resnet50:16", "alexnet:32", "vgg16:4"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--purine", default="build/release/purine")
    options = parser.parse_args()
    for text in options.models:
        model, batch = text.split(":")
        direct, fastest, ratio = processor_time.compare(
            options.rounds, [lambda how=how: processor_time.step_seconds(
                options.purine, model, batch, ["--convolutions", how], FEW, MORE) for how in ("direct", "fastest")])
        print(f"{model}, batch {batch}: direct {direct:.2f} s, fastest {fastest:.2f} s, {ratio}", flush=True)


if __name__ == "__main__":
    main()
