#!/usr/bin/env python3
"""The median that `tuner` gives a variant against what other programs give the same cubin.

    measure_elsewhere.py RESULT VARIANT --tuner BIN [--problem NAME] [--class NAME] [--with ncu|torch|auto] [--l2 cold|warm] [--out DIR]

`tuner inspect RESULT VARIANT --run` times the variant alone and leaves the cubin with all that it takes to launch it.
  ncu    profiles that very command: gpu__time_duration of the run kernels, caches flushed before each (cold) or not.
  torch  launches the cubin on PyTorch's stream: times by torch.cuda.Event, and the kernels' durations by torch.profiler
         (CUPTI); classes fp32 and tf32. L2 is flushed before each launch by writing a buffer of twice its size (cold), or not.
DIR gets the raw output of each and comparison.json. Prints each median and its difference from ours.
"""

import argparse
import csv
import ctypes
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

SAMPLES = 60
BLOCK = 10  # launches in a row, then a pause four times as long: bursts


def ours(options):
    command = [options.tuner, "inspect", str(options.result), options.variant, "--run", "-o", str(options.out / "variant")]
    command += ["--l2", options.l2]
    command += ["--problem", options.problem] if options.problem else []
    command += ["--class", options.accuracy] if options.accuracy else []
    ended = subprocess.run(command, capture_output=True, text=True)
    (options.out / "tuner.txt").write_text(ended.stdout + ended.stderr)
    found = re.search(r"median ([0-9.e+-]+) ms", ended.stdout)
    if ended.returncode != 0 or not found:
        sys.exit(f"tuner inspect ended with {ended.returncode}: {ended.stderr.strip() or ended.stdout.strip()}")
    return float(found[1]), command


def run_kernels(options):
    launches = json.loads((options.out / "variant" / "launches.json").read_text())
    return launches, [launch for launch in launches["launches"] if launch["step"] == "run"]


def by_ncu(options, command):
    """Median over calls of the sum of the run kernels' gpu__time_duration, ms."""
    _, kernels = run_kernels(options)
    names = {launch["symbol"] for launch in kernels}
    profile = ["ncu", "--target-processes", "all", "--csv", "--page", "raw", "--metrics", "gpu__time_duration.sum"]
    profile += ["--clock-control", "none", "--cache-control", "all" if options.l2 == "cold" else "none"]
    profile += ["--kernel-name-base", "mangled", "--kernel-name", "regex:^(" + "|".join(map(re.escape, names)) + ")$"]
    profile += ["--launch-skip", str(8 * len(kernels)), "--launch-count", str(SAMPLES * len(kernels))]
    ended = subprocess.run(profile + command, capture_output=True, text=True)
    (options.out / "ncu.csv").write_text(ended.stdout)
    (options.out / "ncu.err").write_text(ended.stderr)
    table = [line for line in ended.stdout.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(table))
    if len(rows) < 2:
        sys.exit(f"ncu profiled nothing (exit code {ended.returncode}): {ended.stderr.strip()[-500:]}")
    column = next(name for name in rows[0] if name.startswith("gpu__time_duration"))
    scale = {"nsecond": 1e-6, "ns": 1e-6, "usecond": 1e-3, "us": 1e-3, "msecond": 1, "ms": 1}[rows[0][column]]
    values = [float(row[column].replace(",", "")) * scale for row in rows[1:]]
    calls = [sum(values[i : i + len(kernels)]) for i in range(0, len(values), len(kernels))]
    return {"ncu gpu__time_duration": statistics.median(calls)}


class Cubin:
    """The variant's kernels, launched through the driver on a stream of PyTorch's."""

    def __init__(self, folder, launches, torch):
        self.torch, self.launches = torch, launches
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.module = ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), (folder / "kernel.cubin").read_bytes()))
        generator = torch.Generator(device="cuda").manual_seed(1)
        self.buffers = {
            name: torch.randn(count, device="cuda", generator=generator)
            for name, count in launches["elements"].items()
            if count
        }
        for name in ("packed", "workspace"):
            if launches[f"{name}_bytes"]:
                self.buffers[name] = torch.zeros(launches[f"{name}_bytes"], dtype=torch.uint8, device="cuda")
        self.ready = {step: [self.prepare(launch) for launch in launches["launches"] if launch["step"] == step] for step in ("prepare", "run")}

    def check(self, code):
        if code != 0:
            sys.exit(f"a CUDA driver call failed with {code}")

    def prepare(self, launch):
        if launch["cluster_x"] > 1:
            sys.exit("this script does not launch clusters: use --with ncu")
        function = ctypes.c_void_p()
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, launch["symbol"].encode()))
        self.check(self.cuda.cuFuncSetAttribute(function, 8, launch["shared_bytes"]))  # MAX_DYNAMIC_SHARED_SIZE_BYTES
        argument = bytearray.fromhex(launch["arguments"])
        for name, offset in launch["pointers"].items():
            address = self.buffers[name].data_ptr() if name in self.buffers else 0
            argument[offset : offset + 8] = address.to_bytes(8, "little")
        storage = ctypes.create_string_buffer(bytes(argument), len(argument))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(storage))
        shape = [ctypes.c_uint(v) for v in [*launch["grid"], *launch["block"], launch["shared_bytes"]]]
        return function, shape, parameters, storage

    def launch(self, step="run"):
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        for function, shape, parameters, _ in self.ready[step]:
            self.check(self.cuda.cuLaunchKernel(function, *shape, stream, parameters, None))


def by_torch(options):
    import torch

    torch.cuda.init()
    launches, kernels = run_kernels(options)
    torch.zeros(1, device="cuda")
    cubin = Cubin(options.out / "variant", launches, torch)
    cubin.launch("prepare")
    flush = torch.zeros(max(2 * torch.cuda.get_device_properties(0).L2_cache_size, 64 << 20), dtype=torch.uint8, device="cuda")

    def bursts(count, launch):
        done = 0
        while done < count:
            start = time.monotonic()
            for _ in range(min(BLOCK, count - done)):
                if options.l2 == "cold":
                    flush.zero_()
                launch()
            torch.cuda.synchronize()
            done += BLOCK
            time.sleep(min(0.1, 4 * (time.monotonic() - start)))

    time.sleep(0.5)
    bursts(2 * BLOCK, cubin.launch)
    events = []

    def timed():
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        cubin.launch()
        stop.record()
        events.append((start, stop))

    bursts(SAMPLES, timed)
    by_events = [start.elapsed_time(stop) for start, stop in events]
    symbols = {launch["symbol"] for launch in kernels}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        bursts(SAMPLES, cubin.launch)
    trace = options.out / "torch.trace.json"
    profile.export_chrome_trace(str(trace))
    trace_events = json.loads(trace.read_text())["traceEvents"]
    durations = [e["dur"] / 1e3 for e in sorted((e for e in trace_events if e.get("cat") == "kernel"), key=lambda e: e["ts"]) if not re.search(r"at::|vectorized_elementwise|memset", e["name"])]
    calls = [sum(durations[i : i + len(kernels)]) for i in range(0, len(durations) - len(kernels) + 1, len(kernels))]
    (options.out / "torch.json").write_text(json.dumps({"events_ms": by_events, "cupti_ms": calls, "symbols": sorted(symbols)}))
    medians = {"PyTorch's events": statistics.median(by_events)}
    if calls:
        medians["CUPTI, by torch.profiler"] = statistics.median(calls)
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--problem", help="of this problem (default: the first that has the variant)")
    parser.add_argument("--class", dest="accuracy", help="of this accuracy class (default: the first)")
    parser.add_argument("variant")
    parser.add_argument("--tuner", default="tuner")
    parser.add_argument("--with", dest="other", choices=["ncu", "torch", "auto"], default="auto")
    parser.add_argument("--l2", choices=["cold", "warm"], default="cold")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("elsewhere"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    median, command = ours(options)
    other = options.other if options.other != "auto" else "ncu" if shutil.which("ncu") else "torch"
    medians = by_ncu(options, command) if other == "ncu" else by_torch(options)
    print(f"{options.variant}, L2 {options.l2}: tuner {median:.6g} ms")
    for name, value in medians.items():
        print(f"  {name}: {value:.6g} ms, ours is {100 * (median / value - 1):+.2f} %")
    record = {"variant": options.variant, "l2": options.l2, "tuner_ms": median, "others_ms": medians}
    (options.out / "comparison.json").write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
