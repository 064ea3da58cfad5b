#!/usr/bin/env python3
"""Simulated steps beside measured ones: LeNet, GoogLeNet and AlexNet on one core, on two `cpu` devices, and over two
hosts.

    python3 bench/compare_with_simulation.py [--models lenet,googlenet,alexnet] [--rates 10gbit,1gbit,200mbit]
        [--rounds 3] [--steps 6] [--purine build/release/purine] [--json FILE]

Whatever is predicted comes from costs of operators that one device was measured with: `purine bench --workers 1 --trace`
on one core. Where two cores work, another copy of the same ran on the other core meanwhile, since cores share caches,
memory and power; both copies' costs count. The hosts are those of scripts/cluster, each pinned to one core; of the
network the simulation is told its rate, and what --help lists, which is the same for all networks and rates.

A shared machine's speed drifts by a quarter within minutes. So the costs are measured right before and after each run
whose step they predict, and several rounds are made: of each case the table has the medians over the rounds of the
step, of the prediction and of the ratio of the two.

A step is the time from when one iteration has ended to when the next one has, with others under way before and after:
what the simulator calls a step. Needs root and Open MPI for the hosts.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLUSTER = ROOT / "scripts" / "cluster"
BATCHES = {"lenet": 64, "googlenet": 8, "alexnet": 16}  # of a device
STEPS_TIMES = {"lenet": 12}  # its steps are short
UNITS = {"kbit": 1e-6, "mbit": 1e-3, "gbit": 1}
# What Ethernet leaves of a rate for data, as the token bucket of scripts/cluster counts it: of 1,514 bytes with the
# headers of Ethernet, IP and TCP.
DATA_SHARE = 1448 / 1514
BURST_KIB = 500  # of that token bucket: 512 kB

CLUSTER_FILE = """
[cpu.core]
cores = {cores}
f32_gflops = 118
memory_gb_per_s = 12
memory_gib = 24
{cpu_keys}
[card.veth]
gbit_per_s = {rate}
{card_keys}
[[host]]
count = {hosts}
cpu = "core"
card = "veth"
"""


def run_all(commands):
    """Runs them at the same time."""
    processes = [subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate()[0] for process in processes]
    for process in processes:
        if process.returncode != 0:
            sys.exit(f"{' '.join(process.args)} failed with status {process.returncode}")
    return outputs


def step_seconds(trace):
    """Of a traced run: from the end of its first iteration to that of the last but one."""
    ends = collections.defaultdict(float)
    with open(trace, encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event["ph"] == "X" and "iteration" in event["args"]:
                iteration = event["args"]["iteration"]
                ends[iteration] = max(ends[iteration], event["ts"] + event["dur"])
    in_order = [ends[iteration] for iteration in sorted(ends)]
    return (in_order[-2] - in_order[0]) / (len(in_order) - 2) / 1e6


class Comparison:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.cores = sorted(os.sched_getaffinity(0))[:2]
        self.results = collections.defaultdict(list)  # by model and case: measured and predicted

    def bench(self, model, batch, trace, *options):
        steps = self.arguments.steps * STEPS_TIMES.get(model, 1)
        return [self.arguments.purine, "bench", model, "--batch", batch, "--steps", steps, "--trace", trace, *options]

    def measure_costs(self, model, cores, name):
        """One device's costs, on each of the cores at the same time: files that --costs takes."""
        traces = [self.folder / f"{name}-{core}.json" for core in cores]
        run_all([["taskset", "--cpu-list", core, *self.bench(model, BATCHES[model], trace, "--workers", 1)]
                 for core, trace in zip(cores, traces)])
        return traces

    def predict(self, model, batch, costs, *options, hosts=1, cores=1, rate=1.0):
        cluster = self.folder / "cluster.toml"
        cpu_keys = [f"turn_us = {self.arguments.turn_us}"]
        card_keys = [f"{key} = {getattr(self.arguments, key)}"
                     for key in ("latency_us", "core_ns_per_byte", "core_us_per_message")]
        card_keys.append(f"burst_kib = {BURST_KIB}")
        cluster.write_text(CLUSTER_FILE.format(cores=cores, hosts=hosts, rate=rate * DATA_SHARE, cpu_keys="\n".join(cpu_keys),
                                               card_keys="\n".join(card_keys)), encoding="utf-8")
        output, = run_all([[self.arguments.purine, "simulate", model, "--batch", batch, "--cluster", cluster, "--costs", costs,
                            "--steps", 30, "--json", *options]])
        return json.loads(output.splitlines()[-1])["step_seconds"]

    def cases(self, model):
        """Of each: name, cores whose costs count, command, and the simulation's batch and options."""
        batch = BATCHES[model]
        trace = self.folder / "run.json"
        yield ("one core", self.cores[:1], ["taskset", "--cpu-list", self.cores[0], *self.bench(model, batch, trace, "--workers", 1)],
               batch, [], {})
        devices = ["--devices", "cpu:0-1", "--workers", 2]
        yield ("two cpu devices", self.cores, self.bench(model, 2 * batch, trace, *devices), 2 * batch, devices, {"cores": 2})
        for rate in self.arguments.rates:
            unit = next(unit for unit in UNITS if rate.endswith(unit))
            yield (f"two hosts, {rate}", self.cores,
                   [CLUSTER, "run", "--require", "--pin", "--rate", rate, "--", *self.bench(model, 2 * batch, trace)], 2 * batch, [],
                   {"hosts": 2, "rate": float(rate.removesuffix(unit)) * UNITS[unit]})

    def round(self, model):
        costs = None
        cores_of_costs = None
        for case, cores, command, batch, options, network in self.cases(model):
            if cores != cores_of_costs:
                costs = self.measure_costs(model, cores, "before")
            run_all([command])
            measured = step_seconds(self.folder / "run.json")
            later = self.measure_costs(model, cores, "after")
            predicted = statistics.mean(self.predict(model, batch, trace, *options, **network) for trace in costs + later)
            self.results[model, case].append((measured, predicted))
            # Costs after one run are those before the next.
            costs, cores_of_costs = [trace.rename(str(trace).replace("after", "before")) for trace in later], cores

    def report(self, model):
        rows = []
        for case in [case for of, case in self.results if of == model]:
            measured, predicted = map(statistics.median, zip(*self.results[model, case]))
            ratios = sorted(guess / time - 1 for time, guess in self.results[model, case])
            off = statistics.median(ratios)
            rows.append({"model": model, "case": case, "measured": measured, "predicted": predicted, "off": off,
                         "rounds": self.results[model, case]})
            print(f"{model:<12}{case:<22}{measured:>12.4f}{predicted:>12.4f}{off:>9.1%}   ({ratios[0]:.1%} to {ratios[-1]:.1%})", flush=True)
        return rows


def main():
    def names(text):
        return text.split(",") if text else []

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names, default=list(BATCHES))
    parser.add_argument("--rates", type=names, default=["10gbit", "1gbit", "200mbit"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="of a run; LeNet makes 12 times as many (default: 6)")
    network = parser.add_argument_group("what the simulation is told of the network and of the thread that serves it (docs/simulator.md)")
    network.add_argument("--latency-us", type=float, default=50)
    network.add_argument("--core-ns-per-byte", type=float, default=0.42)
    network.add_argument("--core-us-per-message", type=float, default=10)
    network.add_argument("--turn-us", type=float, default=4000)
    parser.add_argument("--purine", type=os.path.abspath, default=ROOT / "build" / "release" / "purine")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments, pathlib.Path(folder))
        print(f"{'network':<12}{'devices':<22}{'measured/s':>12}{'predicted/s':>12}{'off':>9}", flush=True)
        for model in arguments.models:
            for _ in range(arguments.rounds):
                comparison.round(model)
            rows += comparison.report(model)
    errors = sorted(abs(row["off"]) for row in rows)
    print(f"off by {statistics.median(errors):.1%} in the median, by {errors[-1]:.1%} at most")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
