#!/usr/bin/env python3
"""Training over two hosts, beside PyTorch's DistributedDataParallel over gloo, in turn in one run on one machine.

    python3 bench/compare_across_hosts.py [--tables throughput,layers,memory] [--models alexnet,googlenet_bn]
        [--rates 10gbit,1gbit,200mbit] [--batch 16] [--steps 12] [--rounds 3] [--python /usr/bin/python3]
        [--configurations eager,channels_last] [--no-rival] [--purine build/release/purine] [--json FILE]

The hosts are those of scripts/cluster: network namespaces with a link of the given rate, each pinned to one core.

A line is printed for each point as soon as it is measured, and --json has all of them until then: so a run that is
interrupted loses nothing. A later run with the same file adds its rounds to those that are in it; medians are of all.

throughput  First PyTorch is tried in each configuration over two hosts at the first rate (compiled: by torch.compile);
            the fastest is the rival. Each round then runs, for each model: Purine on both hosts at the same time, each for
            itself (alone); then, at each rate, Purine on two ranks, by data parallelism and, where the network has large
            fully connected layers, by the hybrid, and the rival. --batch is of one rank. Prints images/s of each, the
            ratio; Purine's time of a step, against the larger of the two that it can't be shorter than: the computation
            (that of alone) and the wire (the bytes that a rank sends in a step, by the rate); and the share of the time in
            which data moved that lay under operators, at the rank where it is the least. After the rounds: medians over
            them, and the least and the largest of ratios and of steps by the larger bound. --no-rival leaves PyTorch out.
layers      AlexNet with its fully connected layers under data parallelism, tensor parallelism and the hybrid, at
            10gbit and 1gbit: time of a step, and bytes that a rank sends in it, as its endpoint counts them.
memory      Bytes of the optimiser's state, of all variables, and in all, of each rank, where the update is sharded over
            1, 2 and 4 ranks, with momentum and with Adam; 16 images a step; as planned.

Both sides use synthetic images, random weights, and SGD with momentum: forward, loss, backward, update. Needs root, Open
MPI, and for `throughput` a Python with torch and torchvision (--python).
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLUSTER = ROOT / "scripts" / "cluster"
NETWORKS = {  # ours: (theirs, schemes)
    "alexnet": ("alexnet", ["data", "hybrid"]),
    "googlenet_bn": ("googlenet", ["data"]),
    "resnet50": ("resnet50", ["data"]),
    "vgg16": ("vgg16", ["data", "hybrid"]),
}
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def run_torch(arguments):
    """A rank of PyTorch's side: times its training step; rank 0 prints one JSON line."""
    import torch
    import torchvision

    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    os.environ |= {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29511", "GLOO_SOCKET_IFNAME": "eth0"}
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    name, _ = NETWORKS[arguments.torch_worker]
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    network = getattr(torchvision.models, name)(weights=None, **options).train()
    images = torch.randn(arguments.batch, 3, 224, 224)
    labels = torch.randint(0, 1000, (arguments.batch,))
    if "channels_last" in arguments.configurations:
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=int(os.environ["OMPI_COMM_WORLD_SIZE"]))
    network = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    if "compiled" in arguments.configurations:
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
    torch.distributed.barrier()
    if rank == 0:
        print(json.dumps({"seconds": statistics.median(seconds), "torch": torch.__version__}), flush=True)


def bits_per_second(rate):
    for unit, size in UNITS.items():
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * size
    sys.exit(f"the rate {rate} must end with one of {', '.join(UNITS)}")


def json_lines(command):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with status {result.returncode}")
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def on_two_hosts(rate, *command):
    return json_lines([CLUSTER, "run", "--require", "--pin", "--rate", rate, "--", *command])


class Measurements:
    """What was measured, point by point; in the file from the moment when it is added."""

    def __init__(self, path):
        self.path = path and pathlib.Path(path)
        self.points = json.loads(self.path.read_text(encoding="utf-8")) if self.path and self.path.exists() else []

    def add(self, **point):
        self.points.append(point)
        if self.path:
            new = self.path.with_name(self.path.name + ".new")
            new.write_text(json.dumps(self.points, indent=1), encoding="utf-8")
            new.replace(self.path)

    def of(self, **keys):
        return [point for point in self.points if keys.items() <= point.items()]


class Spread:
    """A figure over rounds."""

    def __init__(self, values):
        self.values = list(values)

    def median(self):
        return statistics.median(self.values)

    def text(self):
        if len(self.values) == 1:
            return f"{self.values[0]:.2f}"
        return f"{self.median():.2f} ({min(self.values):.2f}-{max(self.values):.2f})"


class Comparison:
    def __init__(self, arguments):
        self.arguments = arguments
        self.measurements = Measurements(arguments.json)

    def bench(self, model, batch, *options):
        return [self.arguments.purine, "bench", model, "--batch", str(batch), "--steps", str(self.arguments.steps), "--json",
                *options]

    def alone(self, model, batch):
        """Seconds of a step of a rank that exchanges nothing while another computes as it does."""
        lines = on_two_hosts("10gbit", "env", "-i", *self.bench(model, batch))
        return max(batch / line["images_per_s_median"] for line in lines)

    def purine(self, model, rate, scheme="data"):
        batch = 2 * self.arguments.batch
        (line,) = on_two_hosts(rate, *self.bench(model, batch, "--scheme", scheme))
        steps = self.arguments.steps
        # The share that lay under operators, of what moved; all of it where nothing did.
        hidden = min(rank["overlapped_seconds"] / (rank["transfer_seconds"] or 1) for rank in line["ranks"])
        return {"seconds": batch / line["images_per_s_median"], "hidden": hidden,
                "bytes": max(rank["bytes_sent"] for rank in line["ranks"]) / steps, "line": line}

    def torch(self, model, rate, configuration, steps):
        (line,) = on_two_hosts(rate, self.arguments.python, os.path.abspath(__file__), "--torch-worker", model, "--batch",
                               self.arguments.batch, "--steps", steps, "--configurations", configuration)
        return line

    def choose_rival(self, model):
        if len(self.arguments.configurations) == 1:
            return self.arguments.configurations[0]
        trials = {configuration: self.torch(model, self.arguments.rates[0], configuration, 3)
                  for configuration in self.arguments.configurations}
        best = min(trials, key=lambda configuration: trials[configuration]["seconds"])
        print(f"{model}: PyTorch {trials[best]['torch']}, seconds of a step: " +
              ", ".join(f"{name} {trial['seconds']:.2f}" for name, trial in trials.items()), flush=True)
        return best

    def throughput(self):
        arguments = self.arguments
        rivals = {model: None if arguments.no_rival else self.choose_rival(model) for model in arguments.models}
        print(f"{'':<8}{'network, scheme':<20}{'rate':>8}{'purine/s':>10}{'torch/s':>9}  {'ratio':<17}{'step s':>7}{'compute':>9}"
              f"{'wire':>7}  {'step/max':<17}{'hidden':>7}{'MB sent':>9}")
        for turn in range(arguments.rounds):
            for model in arguments.models:
                alone = self.alone(model, arguments.batch)
                for rate in arguments.rates:
                    ours = {scheme: self.purine(model, rate, scheme) for scheme in NETWORKS[model][1]}
                    rival = rivals[model]
                    theirs = self.torch(model, rate, rival, arguments.steps) if rival else None
                    for scheme, result in ours.items():
                        self.measurements.add(table="throughput", network=model, scheme=scheme, rate=rate, rival=rival,
                                              batch=arguments.batch, alone=alone, purine=result, torch=theirs,
                                              wire=8 * result["bytes"] / bits_per_second(rate))
                        self.print_points(f"round {turn + 1}", self.measurements.points[-1:])
        for model, rate in itertools.product(arguments.models, arguments.rates):
            for scheme in NETWORKS[model][1]:
                points = self.measurements.of(table="throughput", network=model, scheme=scheme, rate=rate,
                                              batch=arguments.batch)
                if len(points) > 1:
                    self.print_points(f"all {len(points)}", points)

    def print_points(self, title, points):
        """A line of points that differ in nothing but their round."""
        def over(value, some=points):
            return Spread(map(value, some))

        first = points[0]
        images = 2 * first["batch"]
        beside = [point for point in points if point["torch"]]
        torch = images / over(lambda point: point["torch"]["seconds"], beside).median() if beside else 0
        ratio = over(lambda point: point["torch"]["seconds"] / point["purine"]["seconds"], beside).text() if beside else "-"
        bound = over(lambda point: point["purine"]["seconds"] / max(point["alone"], point["wire"]))
        step = over(lambda point: point["purine"]["seconds"]).median()
        print(f"{title:<8}{first['network'] + ' ' + first['scheme']:<20}{first['rate']:>8}{images / step:>10.2f}"
              f"{f'{torch:.2f}' if torch else '-':>9}  {ratio:<17}{step:>7.3f}"
              f"{over(lambda point: point['alone']).median():>9.3f}{over(lambda point: point['wire']).median():>7.3f}"
              f"  {bound.text():<17}{over(lambda point: point['purine']['hidden']).median():>7.1%}"
              f"{over(lambda point: point['purine']['bytes']).median() / 1e6:>9.1f}", flush=True)

    def layers(self):
        print(f"{'scheme':<10}{'rate':>8}{'step s':>9}{'MB sent':>9}")
        for rate in ("10gbit", "1gbit"):
            for scheme in ("data", "tensor", "hybrid"):
                rows = [self.purine("alexnet", rate, scheme) for _ in range(self.arguments.rounds)]
                seconds = statistics.median(row["seconds"] for row in rows)
                print(f"{scheme:<10}{rate:>8}{seconds:>9.3f}{rows[0]['bytes'] / 1e6:>9.1f}", flush=True)
                self.measurements.add(table="layers", scheme=scheme, rate=rate, rounds=rows)

    def memory(self):
        environment = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]
        print(f"{'network':<14}{'optimiser':<10}{'ranks':>6}  MB of the optimiser's state, of all variables, and in all, by rank")
        for model in self.arguments.models:
            for optimizer, ranks in itertools.product(("momentum", "adam"), (1, 2, 4)):
                sharded = ["--scheme", "sharded"] if ranks > 1 else []
                command = [self.arguments.purine, "bench", model, "--batch", "16", "--steps", "1", "--warm-up", "0", "--json",
                           "--optimizer", optimizer]
                (line,) = json_lines([*environment, "mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", *command,
                                      *sharded])
                texts = [" / ".join(f"{rank[key] / 1e6:.1f}" for key in ("state_bytes", "variable_bytes", "peak_bytes"))
                         for rank in line["ranks"]]
                print(f"{model:<14}{optimizer:<10}{ranks:>6}  {', '.join(texts)}", flush=True)
                self.measurements.add(table="memory", network=model, optimizer=optimizer, ranks=line["ranks"])


def main():
    def names(text):
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=names, default=["throughput", "layers", "memory"])
    parser.add_argument("--models", type=names, default=["alexnet", "googlenet_bn"])
    parser.add_argument("--rates", type=names, default=["10gbit", "1gbit", "200mbit"])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--configurations", type=names, default=["eager", "channels_last"])
    parser.add_argument("--purine", type=os.path.abspath, default=ROOT / "build" / "release" / "purine")
    parser.add_argument("--no-rival", action="store_true")
    parser.add_argument("--json", help="keep all measurements in this file")
    parser.add_argument("--torch-worker", choices=NETWORKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch_worker:
        arguments.configurations = arguments.configurations[0]
        run_torch(arguments)
        return
    comparison = Comparison(arguments)
    for table in arguments.tables:
        {"throughput": comparison.throughput, "layers": comparison.layers, "memory": comparison.memory}[table]()


if __name__ == "__main__":
    main()
