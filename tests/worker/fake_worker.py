#!/usr/bin/env python3
"""A worker that owns no device and does what the family of a variant says. Arguments: __worker SOCKET FOLDER."""
import json
import os
import signal
import socket
import struct
import sys
import time

channel = socket.socket(fileno=int(sys.argv[2]))
folder = sys.argv[3]


def exactly(count):
    data = b""
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data


def send(message):
    text = json.dumps(message).encode()
    channel.sendall(struct.pack("<Q", len(text)) + text)


def first_time(name):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return False
    open(path, "w").close()
    return True


def failure(outcome, reason):
    send({"failure": {"outcome": outcome, "reason": reason, "log": ""}})
    sys.exit(0)


def act(family, company):
    with open(os.path.join(folder, "log"), "a") as log:
        log.write(f"{family} {company}\n")
    if family == "dies":
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    if family == "dies_once" and first_time("dies_once"):
        os._exit(3)
    if family == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if family == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if family == "silent":
        time.sleep(1000)
    if family == "lively":
        for _ in range(14):
            time.sleep(0.5)
            send({"alive": True})
    if family == "crashes":
        failure("crashed", "a sticky error")
    if family == "hangs":
        failure("timed_out", "nothing ended")
    if family == "unsociable" and company > 1:
        os._exit(3)


# What the first so many processes of a folder do in place of starting: signal numbers or "exit" in the file "starts".
starts = os.path.join(folder, "starts")
if os.path.exists(starts):
    with open(starts) as lines:
        left = lines.read().split()
    if left:
        with open(starts, "w") as lines:
            lines.write(" ".join(left[1:]))
        if left[0] == "exit":
            sys.exit(70)
        os.kill(os.getpid(), int(left[0]))
send({"ready": True})
while True:
    request = json.loads(exactly(struct.unpack("<Q", exactly(8))[0]))
    if request["op"] == "load":
        if request["seed"] == 13 and not first_time("loaded"):
            os._exit(3)
        send({"plain_error": 0.25})
    elif request["op"] == "evaluate":
        family = request["variant"]["family"]
        act(family, 1)
        wrong = family == "wrong"
        send({"outcome": "wrong_result" if wrong else "ok", "reason": "not right" if wrong else "", "log": "",
              "errors": None, "prepare_ms": 0, "spent": {"load": 0, "verify": 0, "measure": 0, "idle": 0}})
    elif request["op"] == "baseline":
        # One route for each word of the name; an interrupted list goes on at `skip`.
        records = []
        with open(os.path.join(folder, "limits"), "a") as limits:
            limits.write(f"{request['skip']}: {request['first_seconds']:g} s\n")
        for i, word in list(enumerate(request["name"].split()))[request["skip"]:]:
            record = {"name": request["name"], "route": word, "engine": "", "knobs": "", "workspace_bytes": 0,
                      "traffic_bytes": 0, "deterministic": True, "not_comparable": False, "status": "", "reason": "",
                      "errors": None}
            send({"alive": True, "routes": i, "records": records, "next": record})
            act(word, 1)
            records = [dict(record, status="ok")]
        send({"records": records})
    elif request["op"] == "run_off":
        families = [contestant["variant"]["family"] for contestant in request["contestants"]]
        for name in families:
            act(name, len(families))
        def interval(value):
            return {"median": value, "low": value, "high": value}
        time_record = {"ms": interval(float(len(families))), "samples": [1.0], "l2": "cold", "regime": "burst",
                       "clock_mhz": interval(0.0), "dropped": 0, "interleaved": True, "throttling": []}
        entry = {"times": [time_record for _ in request["measures"]]}
        send({"entries": [entry for _ in families],
              "conditions": {"power_limit_w": len(families), "mig": "", "other_processes": 0, "throttling": [],
                             "not_available": "", "copy": []}})
