"""Stands in for PyTorch in tests of compare_pytorch.py's protocol and report: tensors are shapes with an error, a launch
takes the time that its function is given, conv_transpose2d is wrong, torch.compile fails. It computes nothing."""

import os
from unittest import mock

COST = {"conv_transpose1d": 4.0, "conv1d": 3.0, "conv_transpose2d": 2.0, "baddbmm_": 6.0}
NOW = [0.0]


class Tensor:
    def __init__(self, *shape, error=0.0):
        self.shape, self.error = shape, error

    def same(self, *args, **kwargs):
        return self

    to = double = contiguous = view = transpose = flip = reshape = expand = expand_as = t = squeeze = unsqueeze = same
    copy_ = fill_ = same

    def zero_(self):
        return self

    def baddbmm_(self, *args):
        cost("baddbmm_")
        return self

    def __getitem__(self, key):
        return Tensor(*self.shape, error=self.error)

    def __sub__(self, reference):
        return Difference(*self.shape, error=self.error)

    def data_ptr(self):
        return 4096


class Difference(Tensor):
    """Of a result and the reference."""


def cost(name):
    NOW[0] += COST[name]


def convolution(name, error):
    def call(x, w, bias=None, **options):
        cost(name)
        return Tensor(*OUTPUT, error=error)

    return call


class Event:
    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        self.at = NOW[0]

    def elapsed_time(self, other):
        return other.at - self.at


class Generator:
    def __init__(self, device):
        pass

    def manual_seed(self, seed):
        return self


class Norm:
    def __init__(self, value):
        self.value = value

    def __truediv__(self, other):
        return Norm(self.value / other.value)

    def item(self):
        return self.value


def randn(*shape, **options):
    return Tensor(*shape)


zeros = randn
OUTPUT = []


def empty(*shape, **options):
    OUTPUT[:] = shape
    return Tensor(*shape)


def empty_like(tensor):
    return Tensor(*tensor.shape, error=1e-7)


def vector_norm(tensor):
    return Norm(tensor.error if isinstance(tensor, Difference) else 1.0)


__version__ = "0 (stand-in)"
float32 = float16 = bfloat16 = uint8 = channels_last = None
version = mock.Mock(cuda="none")
linalg = mock.Mock(vector_norm=vector_norm)
backends = mock.MagicMock()
backends.cudnn.version.return_value = 0
cuda = mock.MagicMock(Event=Event)
cuda.is_available.return_value = "STAND_IN_HAS_NO_GPU" not in os.environ
cuda.get_device_properties.return_value = mock.Mock(L2_cache_size=1 << 20, multi_processor_count=1)
cuda.get_device_properties.return_value.name = "stand-in"
cuda.CUDAGraph.return_value.replay = lambda: cost("conv_transpose1d")
nn = mock.Mock()
nn.functional.conv_transpose1d = convolution("conv_transpose1d", 1e-7)
nn.functional.conv1d = convolution("conv1d", 1e-7)
nn.functional.conv_transpose2d = convolution("conv_transpose2d", 0.5)


def compile(function, dynamic):
    def call(*args):
        raise RuntimeError("no compiler\nhere")

    return call
