#!/usr/bin/env python3
"""Processor time of a training step with two builds of the command, in turn.

    python3 bench/compare_builds.py OTHER/purine build/release/purine [--rounds 3] [MODEL:BATCH …] [-- OPTIONS]

Each round runs `purine bench` of both builds, each with few and with more steps; the difference of the processes' user time,
divided by the difference of steps, is a step without what precedes the first. Processor time, unlike the clock, also says
something on a machine that others use. Prints a line a network: seconds of all threads together (medians over rounds) and the
ratio (median, with the least and the largest; above 1 the second build is the faster one). OPTIONS go to `purine bench`.
"""
import argparse
import sys

import processor_time

FEW, MORE = 1, 5


def step_seconds(purine, model, batch, extra):
    # Small networks take more steps for times that mean something.
    times = 100 if model == "lenet" else 3 if model == "network_in_network" else 1
    return processor_time.step_seconds(purine, model, batch, extra, FEW * times, MORE * times)


def main():
    arguments = sys.argv[1:]
    extra = []
    if "--" in arguments:
        extra = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("models", nargs="*", metavar="MODEL:BATCH",
                        default=["googlenet_bn:32", "resnet50:16", "network_in_network:64", "alexnet:32", "lenet:64"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_intermixed_args(arguments)
    for text in options.models:
        model, batch = text.split(":")
        first, second, ratio = processor_time.compare(
            options.rounds, [lambda build=build: step_seconds(build, model, batch, extra) for build in (options.first, options.second)])
        print(f"{model}, batch {batch}: {first:.4f} s and {second:.4f} s, {ratio}", flush=True)


if __name__ == "__main__":
    main()
