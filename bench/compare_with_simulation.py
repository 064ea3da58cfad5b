#!/usr/bin/env python3
"""Simulated steps beside measured ones: LeNet, GoogLeNet and AlexNet on one core, on two `cpu` devices, and over two
hosts.

    python3 bench/compare_with_simulation.py [--models lenet,googlenet,alexnet] [--cases core,devices,10gbit,1gbit,200mbit]
        [--rounds 5] [--steps 6] [--folder FOLDER] [--purine build/release/purine] [--json FILE]

Whatever is predicted comes from costs of operators that one device was measured with: `purine bench --workers 1 --trace`
on one core. Where two cores work, another copy of the same ran on the other core meanwhile, since cores share caches,
memory and power; both copies' costs count. The hosts are those of scripts/cluster, each pinned to one core; of the
network the simulation is told its rate, and what --help lists, which is the same for all networks and rates.

A shared machine's speed drifts by a quarter within minutes. So costs and the runs whose step they predict are measured in
turn, some seconds each, and of each run the prediction comes from the costs right before and right after it: their executions
are played again one after the other. Of each case the table has the medians over the rounds of the step, of the prediction
and of the ratio of the two. Everything is predicted when all is measured, from the costs alone, and before any run's time is
read. With --folder the measurements stay there: another call with the folder measures what is missing, and predicts all.

A step is the time from when one iteration has ended to when the next one has, with others under way before and after:
what the simulator calls a step. Needs root and Open MPI for the hosts.
"""
import argparse
import collections
import contextlib
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


def play_one_after_another(traces, path):
    """Writes a trace whose iterations are those of all the others."""
    together = None
    next_iteration = 0
    for trace in traces:
        with open(trace, encoding="utf-8") as file:
            content = json.load(file)
        events = [event for event in content["traceEvents"] if event["ph"] == "X" and "iteration" in event["args"]]
        iterations = sorted({event["args"]["iteration"] for event in events})
        number_of = {iteration: next_iteration + number for number, iteration in enumerate(iterations)}
        next_iteration += len(iterations)
        for event in events:
            event["args"]["iteration"] = number_of[event["args"]["iteration"]]
        if together is None:
            together = content
        else:
            together["traceEvents"] += events
    path.write_text(json.dumps(together), encoding="utf-8")
    return next_iteration


class Case:
    """A way to run a network: how it is measured, and how it is simulated."""

    def __init__(self, name, cores, batches, simulated, rate=None):
        self.name = name
        self.cores = cores  # that work, and whose costs count
        self.batches = batches  # of a device, that make one of all
        self.simulated = simulated  # of the cluster file
        self.rate = rate

    @property
    def options(self):
        return ["--devices", "cpu:0-1", "--workers", 2] if self.simulated["cores"] == 2 else []


def cases(cores, names):
    for name in names:
        if name == "core":
            yield Case("one core", cores[:1], 1, {"cores": 1, "hosts": 1, "rate": 1})
        elif name == "devices":
            yield Case("two cpu devices", cores, 2, {"cores": 2, "hosts": 1, "rate": 1})
        else:
            unit = next(unit for unit in UNITS if name.endswith(unit))
            rate = float(name.removesuffix(unit)) * UNITS[unit] * DATA_SHARE
            yield Case(f"two hosts, {name}", cores, 2, {"cores": 1, "hosts": 2, "rate": rate}, name)


class Comparison:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.cores = sorted(os.sched_getaffinity(0))[:2]

    def bench(self, model, batches, trace, *options):
        steps = self.arguments.steps * STEPS_TIMES.get(model, 1)
        return [self.arguments.purine, "bench", model, "--batch", batches * BATCHES[model], "--steps", steps, "--trace", trace, *options]

    def file(self, model, case, what):
        return self.folder / f"{model}-{case.name}-{what}.json".replace(" ", "_").replace(",", "")

    def costs(self, model, case, number):
        return [self.file(model, case, f"costs{number}-{core}") for core in case.cores]

    def measure_costs(self, model, case, number):
        """One device's costs, on each of the case's cores at the same time."""
        traces = self.costs(model, case, number)
        if all(trace.exists() for trace in traces):
            return
        run_all([["taskset", "--cpu-list", core, *self.bench(model, 1, trace, "--workers", 1)]
                 for core, trace in zip(case.cores, traces)])

    def measure(self, model, case):
        self.measure_costs(model, case, 0)
        for number in range(self.arguments.rounds):
            trace = self.file(model, case, f"run{number}")
            if not trace.exists():
                command = self.bench(model, case.batches, trace, *(case.options or ["--workers", 1]))
                if case.rate:
                    command = [CLUSTER, "run", "--require", "--pin", "--rate", case.rate, "--", *command]
                elif len(case.cores) == 1:
                    command = ["taskset", "--cpu-list", case.cores[0], *command]
                run_all([command])
            self.measure_costs(model, case, number + 1)

    def predict(self, model, case, costs):
        together = self.folder / "costs.json"
        iterations = play_one_after_another(costs, together)
        cluster = self.folder / "cluster.toml"
        cpu_keys = [f"{key} = {getattr(self.arguments, key)}" for key in ("turn_us", "slice_us")]
        card_keys = [f"{key} = {getattr(self.arguments, key)}"
                     for key in ("latency_us", "core_ns_per_byte", "core_us_per_message")]
        card_keys += [f"burst_kib = {BURST_KIB}", f"buffer_kib = {self.arguments.buffer_kib}"]
        cluster.write_text(CLUSTER_FILE.format(**case.simulated, cpu_keys="\n".join(cpu_keys), card_keys="\n".join(card_keys)),
                           encoding="utf-8")
        output, = run_all([[self.arguments.purine, "simulate", model, "--batch", case.batches * BATCHES[model], "--cluster", cluster,
                            "--costs", together, "--steps", iterations, "--json", *case.options]])
        return json.loads(output.splitlines()[-1])["step_seconds"]

    def predictions(self, model, case):
        return [self.predict(model, case, self.costs(model, case, number) + self.costs(model, case, number + 1))
                for number in range(self.arguments.rounds)]

    def row(self, model, case, predictions):
        rounds = [(step_seconds(self.file(model, case, f"run{number}")), prediction) for number, prediction in enumerate(predictions)]
        measured, predicted = map(statistics.median, zip(*rounds))
        ratios = sorted(guess / time - 1 for time, guess in rounds)
        off = statistics.median(ratios)
        print(f"{model:<12}{case.name:<22}{measured:>12.4f}{predicted:>12.4f}{off:>9.1%}   ({ratios[0]:.1%} to {ratios[-1]:.1%})", flush=True)
        return {"model": model, "case": case.name, "measured": measured, "predicted": predicted, "off": off, "rounds": rounds}


def main():
    def names(text):
        return text.split(",") if text else []

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=names, default=list(BATCHES))
    parser.add_argument("--cases", type=names, default=["core", "devices", "10gbit", "1gbit", "200mbit"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6, help="of a run; LeNet makes 12 times as many (default: 6)")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the measurements there, and use those that are there")
    parser.add_argument("--measure-only", action="store_true", help="predict nothing yet: needs --folder")
    network = parser.add_argument_group("what the simulation is told of the network and of the thread that serves it (docs/simulator.md)")
    network.add_argument("--latency-us", type=float, default=50)
    network.add_argument("--core-ns-per-byte", type=float, default=0.42)
    network.add_argument("--core-us-per-message", type=float, default=10)
    network.add_argument("--buffer-kib", type=float, default=4096, help="as the last number of net.ipv4.tcp_wmem (default: 4096)")
    network.add_argument("--turn-us", type=float, default=4000)
    network.add_argument("--slice-us", type=float, default=1400)
    parser.add_argument("--purine", type=os.path.abspath, default=ROOT / "build" / "release" / "purine")
    parser.add_argument("--json", help="write all figures to this file")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        comparison = Comparison(arguments, folder)
        wanted = [(model, case) for model in arguments.models for case in cases(comparison.cores, arguments.cases)]
        for model, case in wanted:
            comparison.measure(model, case)
        if arguments.measure_only:
            return
        predictions = [comparison.predictions(model, case) for model, case in wanted]
        print(f"{'network':<12}{'devices':<22}{'measured/s':>12}{'predicted/s':>12}{'off':>9}", flush=True)
        rows = [comparison.row(model, case, predicted) for (model, case), predicted in zip(wanted, predictions)]
    errors = sorted(abs(row["off"]) for row in rows)
    print(f"off by {statistics.median(errors):.1%} in the median, by {errors[-1]:.1%} at most")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
