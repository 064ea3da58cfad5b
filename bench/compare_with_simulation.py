#!/usr/bin/env python3
"""Simulated steps beside measured ones: LeNet, GoogLeNet and AlexNet on one core, on two `cpu` devices, and over two
hosts.

    python3 bench/compare_with_simulation.py [--models lenet,googlenet,alexnet] [--rates 10gbit,1gbit,200mbit]
        [--steps 12] [--rounds 1] [--purine build/release/purine] [--json FILE]

Whatever is predicted comes from costs of operators that one device was measured with: `purine bench --workers 1 --trace`
on one core. Where two cores work, another copy of the same ran on the other core meanwhile, since cores share caches, memory
and power. The hosts are those of scripts/cluster, each pinned to one core; of the network the simulation is told its
rate, and --latency-us, --message-us and --core-ns-per-byte, which are the same for all networks and rates.

A line a case: measured and predicted seconds of a step, and how far the prediction is off. Needs root and Open MPI for
the hosts.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLUSTER = ROOT / "scripts" / "cluster"
BATCHES = {"lenet": 64, "googlenet": 16, "alexnet": 16}  # of a device
UNITS = {"kbit": 1e-6, "mbit": 1e-3, "gbit": 1}

CLUSTER_FILE = """
[cpu.core]
cores = {cores}
f32_gflops = 118
memory_gb_per_s = 12
memory_gib = 24
[card.veth]
gbit_per_s = {rate}
latency_us = {latency}
message_us = {message}
core_ns_per_byte = {core}
[[host]]
count = {hosts}
cpu = "core"
card = "veth"
"""


def start(command):
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)


def result_of(process):
    output = process.communicate()[0]
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)} failed with status {process.returncode}")
    return json.loads(next(line for line in output.splitlines() if line.startswith("{")))


class Comparison:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.rows = []

    def bench(self, model, batch, *options):
        # LeNet's steps are short.
        steps = self.arguments.steps * (30 if model == "lenet" else 1)
        return [self.arguments.purine, "bench", model, "--batch", batch, "--steps", steps, "--json", *options]

    def seconds(self, line):
        return line["batch"] / line["images_per_s_median"]

    def on_core(self, core, model, *options):
        return ["taskset", "--cpu-list", core, *self.bench(model, BATCHES[model], "--workers", 1, *options)]

    def predict(self, model, batch, costs, *options, hosts=1, cores=1, rate=1.0):
        arguments = self.arguments
        cluster = self.folder / "cluster.toml"
        cluster.write_text(CLUSTER_FILE.format(cores=cores, hosts=hosts, rate=rate, latency=arguments.latency_us,
                                               message=arguments.message_us, core=arguments.core_ns_per_byte), encoding="utf-8")
        line = result_of(start([arguments.purine, "simulate", model, "--batch", batch, "--cluster", cluster, "--costs", costs,
                                "--steps", 10, "--json", *options]))
        return line["step_seconds"]

    def report(self, model, case, measured, predicted):
        off = predicted / measured - 1
        self.rows.append({"model": model, "case": case, "measured": measured, "predicted": predicted, "off": off})
        print(f"{model:<12}{case:<22}{measured:>12.4f}{predicted:>12.4f}{off:>9.1%}", flush=True)

    def compare(self, model):
        first, second = sorted(os.sched_getaffinity(0))[:2]
        batch = BATCHES[model]
        quiet, busy = self.folder / "quiet.json", self.folder / "busy.json"
        result_of(start(self.on_core(first, model, "--trace", quiet)))
        measured = statistics.median(self.seconds(result_of(start(self.on_core(first, model))))
                                     for _ in range(self.arguments.rounds))
        self.report(model, "one core", measured, self.predict(model, batch, quiet))

        other = start(self.on_core(second, model))
        result_of(start(self.on_core(first, model, "--trace", busy)))
        result_of(other)
        measured = statistics.median(
            self.seconds(result_of(start(self.bench(model, 2 * batch, "--devices", "cpu:0,cpu:1", "--workers", 2))))
            for _ in range(self.arguments.rounds))
        self.report(model, "two cpu devices", measured,
                    self.predict(model, 2 * batch, busy, "--devices", "cpu:0-1", cores=2))
        for rate in self.arguments.rates:
            unit = next(unit for unit in UNITS if rate.endswith(unit))
            gbit = float(rate.removesuffix(unit)) * UNITS[unit]
            measured = statistics.median(
                self.seconds(result_of(start([CLUSTER, "run", "--require", "--pin", "--rate", rate, "--",
                                              *self.bench(model, 2 * batch)]))) for _ in range(self.arguments.rounds))
            self.report(model, f"two hosts, {rate}", measured, self.predict(model, 2 * batch, busy, hosts=2, rate=gbit))


def main():
    def names(text):
        return text.split(",") if text else []

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names, default=list(BATCHES))
    parser.add_argument("--rates", type=names, default=["10gbit", "1gbit", "200mbit"])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--latency-us", type=float, default=60)
    parser.add_argument("--message-us", type=float, default=10)
    parser.add_argument("--core-ns-per-byte", type=float, default=0.4)
    parser.add_argument("--purine", type=os.path.abspath, default=ROOT / "build" / "release" / "purine")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments, pathlib.Path(folder))
        print(f"{'network':<12}{'devices':<22}{'measured/s':>12}{'predicted/s':>12}{'off':>9}", flush=True)
        for model in arguments.models:
            comparison.compare(model)
    errors = sorted(abs(row["off"]) for row in comparison.rows)
    print(f"off by {statistics.median(errors):.1%} in the median, by {errors[-1]:.1%} at most")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(comparison.rows, file, indent=1)


if __name__ == "__main__":
    main()
