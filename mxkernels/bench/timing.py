"""Time on the device: interleaved, cold caches, medians with their spread.

Every round times each call once, in turn, starting with another one each time, so that a drifting
clock hits all alike. The device is kept busy while the host queues a round: what lies between two
events is the device's time and no host's. Inputs come from pools that exceed the L2, outputs are
kept as long as the pool is deep, so that the allocator hands out cold memory too.

`replays` times a CUDA graph of one launch per set instead: for shapes whose kernels are as short
as a launch. Rows say which of the two they are.
"""

import statistics
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch

from mxkernels.bench.jobs import Job, compare, poison, spread

CYCLES_PER_SECOND = 2_000_000_000
"""Of `torch.cuda._sleep`, about; only the length of the head start depends on it."""


LEAST_SAMPLES = 3
"""Of fewer there are no quantiles between the extremes, and no spread is told."""


def summary(samples: Sequence[float]) -> dict[str, float]:
    """Median, quantiles and extremes of microseconds.

    >>> summary([3.0, 1.0, 2.0])["median_us"]
    2.0
    """
    ordered = sorted(samples)
    last = len(ordered) - 1
    return {
        "median_us": round(statistics.median(ordered), 3),
        "min_us": round(ordered[0], 3),
        "p20_us": round(ordered[round(0.2 * last)], 3),
        "p80_us": round(ordered[round(0.8 * last)], 3),
        "max_us": round(ordered[-1], 3),
        "samples": len(ordered),
    }


class DeviceWatch:
    """Marks on the current stream of a CUDA device."""

    def mark(self) -> Any:
        """A point in the stream."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def head_start(self, seconds: float) -> None:
        """Keep the device busy for about so long."""
        torch.cuda._sleep(int(seconds * CYCLES_PER_SECOND))

    def settle(self) -> None:
        """Wait until all is done."""
        torch.cuda.synchronize()

    def microseconds(self, start: Any, end: Any) -> float:
        """Between two marks."""
        return start.elapsed_time(end) * 1e3


class HostWatch(DeviceWatch):
    """The same on a CPU, where a call returns when it is done; for tests, not for figures."""

    def mark(self) -> float:
        """Now."""
        return time.perf_counter()

    def head_start(self, seconds: float) -> None:
        """Nothing runs ahead."""

    def settle(self) -> None:
        """Nothing is pending."""

    def microseconds(self, start: float, end: float) -> float:
        """Between two marks."""
        return (end - start) * 1e6


def watch_for(device: torch.device) -> DeviceWatch:
    """The watch of a device."""
    return DeviceWatch() if device.type == "cuda" else HostWatch()


def interleaved(jobs: Sequence[Job], rounds: int, watch: DeviceWatch) -> None:
    """Fill `samples["events"]` of each job; outputs of the last call are compared once more."""
    kept: list[deque[tuple[Any, Any]]] = [deque(maxlen=len(job.pool.items)) for job in jobs]

    def once(index: int) -> None:
        item = jobs[index].pool.next()
        kept[index].append((item, jobs[index].call(item)))

    for index, job in enumerate(jobs):
        for _ in range(len(job.pool.items) + 1):
            once(index)
    watch.settle()
    start = time.perf_counter()
    for index in range(len(jobs)):
        once(index)
    # Twice what queueing took: the head start covers a slow moment of the host.
    ahead = 2 * (time.perf_counter() - start) + 1e-4
    watch.settle()
    taken: list[list[float]] = [[] for _ in jobs]
    for turn in range(rounds):
        marks = []
        watch.head_start(ahead)
        for step in range(len(jobs)):
            index = (turn + step) % len(jobs)
            first = watch.mark()
            once(index)
            marks.append((index, first, watch.mark()))
        watch.settle()
        for index, first, last in marks:
            taken[index].append(watch.microseconds(first, last))
    for job, samples, outputs in zip(jobs, taken, kept, strict=True):
        job.samples["events"] = samples
        compare(job, *outputs[-1])
        outputs.clear()


def replays(jobs: Sequence[Job], rounds: int) -> None:
    """Fill `samples["graph"]`: a replay of one launch per set, divided by the number of sets.

    The outputs of the graph are poisoned after the last timed replay, written by one more, and
    compared.
    """
    graphs = []
    for job in jobs:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = [job.call(item) for item in job.pool.items]
        graphs.append((graph, outputs))
    watch = DeviceWatch()
    taken: list[list[float]] = [[] for _ in jobs]
    for turn in range(rounds + 1):
        for step in range(len(jobs)):
            index = (turn + step) % len(jobs)
            watch.head_start(1e-4)
            first = watch.mark()
            graphs[index][0].replay()
            last = watch.mark()
            watch.settle()
            if turn:  # the first replay uploads the graph
                count = len(jobs[index].pool.items)
                taken[index].append(watch.microseconds(first, last) / count)
    for job, samples, (graph, outputs) in zip(jobs, taken, graphs, strict=True):
        job.samples["graph"] = samples
        poison(outputs)
        graph.replay()
        watch.settle()
        for index in spread(len(outputs)):
            compare(job, job.pool.items[index], outputs[index])
