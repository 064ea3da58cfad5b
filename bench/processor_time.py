"""Processor time of a training step, for scripts that compare.

Unlike the clock it also says something on a machine that others use.
"""
import resource
import statistics
import subprocess


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def step_seconds(purine, model, batch, options, few, more):
    """Of all threads together: `purine bench` with few and with more steps, so that what precedes the first step is left out."""
    command = [purine, "bench", model, "--batch", batch, "--warm-up", "0", *options, "--steps"]
    return (user_seconds(command + [str(more)]) - user_seconds(command + [str(few)])) / (more - few)


def compare(rounds, measures):
    """Calls two measurements in turn: the median of each, and of their ratios the median, the least and the largest."""
    pairs = [[measure() for measure in measures] for _ in range(rounds)]
    first, second = (statistics.median(times) for times in zip(*pairs))
    ratios = sorted(one / other for one, other in pairs)
    return first, second, f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
