#!/usr/bin/env python3
"""Processor time of a training step with convolutions by the fastest algorithm, beside plain sums.

    python3 bench/compare_convolutions.py [--rounds 3] [--purine build/release/purine] [MODEL:BATCH …]

Each round runs `purine bench --convolutions direct` and `--convolutions fastest` in turn, each with few and with more
steps; the difference of the processes' user time, divided by the difference of steps, is a step without what precedes the
first. Processor time, unlike the clock, also says something on a machine that others use. Prints a line a network: seconds
of all threads together (medians over rounds) and the ratio (median, with the least and the largest).
"""
import argparse
import resource
import statistics
import subprocess

FEW, MORE = 1, 4


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def step_seconds(purine, model, batch, how):
    command = [purine, "bench", model, "--batch", batch, "--warm-up", "0", "--convolutions", how, "--steps"]
    return (user_seconds(command + [str(MORE)]) - user_seconds(command + [str(FEW)])) / (MORE - FEW)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL:BATCH", default=[
        "googlenet_bn:32", "googlenet:32", "network_in_network:64", "resnet18:16", "resnet50:16", "alexnet:32", "vgg16:4"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--purine", default="build/release/purine")
    options = parser.parse_args()
    for text in options.models:
        model, batch = text.split(":")
        rounds = [[step_seconds(options.purine, model, batch, how) for how in ("direct", "fastest")]
                  for _ in range(options.rounds)]
        direct, fastest = (statistics.median(times) for times in zip(*rounds))
        ratios = sorted(direct / fastest for direct, fastest in rounds)
        print(f"{model}, batch {batch}: direct {direct:.2f} s, fastest {fastest:.2f} s, "
              f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    main()
