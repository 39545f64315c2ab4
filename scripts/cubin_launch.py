"""Launches a variant's cubin from Python, by the folder that `tuner inspect` writes. Imported by other scripts."""

import ctypes
import json

CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED


class LaunchError(Exception):
    """A call of the CUDA driver failed."""


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: the value is a union of 64 bytes that begins at byte 8."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def read_launches(folder):
    return json.loads((folder / "launches.json").read_text())


class Cubin:
    """The kernels of a folder on PyTorch's current stream.

    `tensors` holds x, w, y and, where the problem has one, bias; packed weights and workspace are made here.
    """

    def __init__(self, folder, tensors, torch):
        self.torch = torch
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.module = ctypes.c_void_p()
        torch.zeros(1, device="cuda")  # makes the context current
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), (folder / "kernel.cubin").read_bytes()))
        launches = read_launches(folder)
        self.buffers = dict(tensors)
        for name in ("packed", "workspace"):
            if launches[f"{name}_bytes"]:
                self.buffers[name] = torch.zeros(launches[f"{name}_bytes"], dtype=torch.uint8, device="cuda")
        self.ready = {
            step: [self.ready_launch(launch) for launch in launches["launches"] if launch["step"] == step]
            for step in ("prepare", "run")
        }

    def check(self, code):
        if code != 0:
            raise LaunchError(f"a call of the CUDA driver failed with {code}")

    def ready_launch(self, launch):
        function = ctypes.c_void_p()
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, launch["symbol"].encode()))
        self.check(self.cuda.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, launch["shared_bytes"]))
        argument = bytearray.fromhex(launch["arguments"])
        for name, offset in launch["pointers"].items():
            address = self.buffers[name].data_ptr() if name in self.buffers else 0
            argument[offset : offset + 8] = address.to_bytes(8, "little")
        storage = ctypes.create_string_buffer(bytes(argument), len(argument))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(storage))
        config = Config()
        config.grid[:], config.block[:] = launch["grid"], launch["block"]
        config.shared_bytes = launch["shared_bytes"]
        attribute = Attribute(id=CLUSTER_DIMENSION)
        if launch["cluster_x"] > 1:
            attribute.value[:3] = [launch["cluster_x"], 1, 1]
            config.attributes, config.attribute_count = ctypes.pointer(attribute), 1
            if launch["cluster_x"] > 8:
                self.check(self.cuda.cuFuncSetAttribute(function, NON_PORTABLE_CLUSTER, 1))
        return function, config, parameters, (storage, attribute)  # the last are kept alive

    def launch(self, step="run"):
        stream = self.torch.cuda.current_stream().cuda_stream
        for function, config, parameters, _ in self.ready[step]:
            config.stream = stream
            self.check(self.cuda.cuLaunchKernelEx(ctypes.byref(config), function, parameters, None))
