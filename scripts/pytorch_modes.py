"""The ways PyTorch offers to compute a ConvTranspose1d, each as a Way to be timed. Imported by compare_pytorch.py."""

import dataclasses
from typing import Callable

DTYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}
# Largest relative Frobenius error over the first batch: it catches other arithmetic than the class's, not the last bit.
MOST_ERROR = {"fp32": 1e-5, "tf32": 2e-3}


@dataclasses.dataclass
class Way:
    name: str
    call: Callable  # enqueues one call; returns y, or None where it is in `y`
    tf32: bool = False
    benchmark: bool = True  # cudnn.benchmark: PyTorch tries the library's algorithms once for each shape
    comparable: bool = True  # False: another class, or begins or ends in another layout
    note: str = ""
    library: str = "cudnn"  # whose routes of ours it is to be held against
    y: object = None  # where the call leaves its result, if it returns none
    to_ncl: Callable = lambda y: y


class Flags:
    """PyTorch's global switches, set before each launch and outside of what is timed."""

    def __init__(self, torch):
        self.torch = torch

    def set(self, way):
        self.torch.backends.cudnn.allow_tf32 = way.tf32
        self.torch.backends.cuda.matmul.allow_tf32 = way.tf32
        self.torch.backends.cudnn.benchmark = way.benchmark


def length_out(p):
    return (p["length"] - 1) * p["stride"] - 2 * p["padding"] + p["dilation"] * (p["kernel_size"] - 1) + p["output_padding"] + 1


def draw(torch, problem, accuracy):
    """x, w, bias or None, y: normal values, the same for every way."""
    dtype = getattr(torch, DTYPES[accuracy])
    generator = torch.Generator(device="cuda").manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, device="cuda", generator=generator).to(dtype)

    p = problem
    x = normal(p["batch"], p["in_channels"], p["length"])
    w = normal(p["in_channels"], p["out_channels"] // p["groups"], p["kernel_size"])
    bias = normal(p["out_channels"]) if p["bias"] else None
    y = torch.empty(p["batch"], p["out_channels"], length_out(p), device="cuda", dtype=dtype)
    return {"x": x, "w": w, "bias": bias, "y": y}


def flipped_forward(torch, p, t):
    """conv1d with the taps reversed and the channels exchanged, or why it does not apply."""
    before = p["dilation"] * (p["kernel_size"] - 1) - p["padding"]
    if p["stride"] != 1 or p["output_padding"] != 0 or before < 0:
        return "conv1d with a flipped kernel needs stride 1, no output padding, and padding within the taps"
    groups, inner, outer = p["groups"], p["in_channels"] // p["groups"], p["out_channels"] // p["groups"]
    flipped = t["w"].view(groups, inner, outer, -1).transpose(1, 2).flip(-1).reshape(p["out_channels"], inner, -1).contiguous()
    options = {"padding": before, "dilation": p["dilation"], "groups": groups}
    return lambda: torch.nn.functional.conv1d(t["x"], flipped, t["bias"], **options)


def shift_add(torch, p, t):
    """One product a tap, added where it belongs, in place; or why it does not apply."""
    if p["stride"] != 1 or p["groups"] != 1:
        return "one product a tap needs stride 1 and one group"
    x, w, bias, y = t["x"], t["w"], t["bias"], torch.empty_like(t["y"])
    taps = [w[:, :, k].t().contiguous().expand(p["batch"], -1, -1) for k in range(p["kernel_size"])]

    def call():
        y.zero_() if bias is None else y.copy_(bias[None, :, None].expand_as(y))
        for k, tap in enumerate(taps):
            shift = k * p["dilation"] - p["padding"]
            begin, end = max(0, shift), min(y.shape[2], x.shape[2] + shift)
            if begin < end:
                y[:, :, begin:end].baddbmm_(tap, x[:, :, begin - shift : end - shift])
        return y

    return call


def channels_last(torch, p, t):
    """The convolution on channels-last tensors: with conversions of x and y, and without."""
    last = torch.channels_last
    options = {"stride": (1, p["stride"]), "padding": (0, p["padding"]), "output_padding": (0, p["output_padding"])}
    options |= {"dilation": (1, p["dilation"]), "groups": p["groups"]}
    x, w = t["x"].unsqueeze(2), t["w"].unsqueeze(2).contiguous(memory_format=last)
    ready = x.contiguous(memory_format=last)
    transpose = torch.nn.functional.conv_transpose2d

    def whole():
        return transpose(x.contiguous(memory_format=last), w, t["bias"], **options).contiguous().squeeze(2)

    return whole, lambda: transpose(ready, w, t["bias"], **options)


def graph_of(torch, flags, way):
    """The way's call, recorded once and replayed."""
    flags.set(way)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            way.call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = way.call()
    return Way("CUDA graph of eager", graph.replay, tf32=way.tf32, y=y)


def ways_of(torch, flags, problem, accuracy, tensors):
    """(ways, [(name, why it is missing)]) for a problem in a class."""
    p, t = problem, tensors
    tf32 = accuracy == "tf32"
    options = {key: p[key] for key in ("stride", "padding", "output_padding", "groups", "dilation")}

    def eager(x, w, bias):
        return torch.nn.functional.conv_transpose1d(x, w, bias, **options)

    def call():
        return eager(t["x"], t["w"], t["bias"])

    ways, missing = [], []

    def add(name, made, **more):
        if isinstance(made, str):
            missing.append((name, made))
        else:
            ways.append(Way(name, made, tf32=tf32, **more))

    add("eager", call, benchmark=False)
    add("eager, cudnn.benchmark", call)
    if accuracy == "fp32":
        ways.append(Way("eager, PyTorch's default (TF32)", call, True, False, False, "another class: TF32"))
    try:
        ways.append(graph_of(torch, flags, Way("", call, tf32=tf32)))
    except RuntimeError as error:
        missing.append(("CUDA graph of eager", str(error).splitlines()[0]))
    add("conv1d, flipped kernel", flipped_forward(torch, p, t))
    whole, bare = channels_last(torch, p, t)
    add("channels-last", whole)
    note = "x and y stay channels-last"
    add("channels-last, conversions not counted", bare, comparable=False, note=note, to_ncl=lambda y: y.squeeze(2))
    compiled = torch.compile(eager, dynamic=False)
    add("torch.compile", lambda: compiled(t["x"], t["w"], t["bias"]))
    add("shift-add by baddbmm_", shift_add(torch, p, t), library="cublas_shift_add")
    return ways, missing


def reference_of(torch, problem, tensors):
    """The first batch in float64."""
    options = {key: problem[key] for key in ("stride", "padding", "output_padding", "groups", "dilation")}
    x, w, bias = tensors["x"][:1].double(), tensors["w"].double(), tensors["bias"]
    return torch.nn.functional.conv_transpose1d(x, w, None if bias is None else bias.double(), **options)


def error_of(torch, reference, y):
    y = y[:1].double()
    if y.shape != reference.shape:
        return float("inf")
    error = (torch.linalg.vector_norm(y - reference) / torch.linalg.vector_norm(reference)).item()
    return error if error == error else float("inf")


def most_error(torch, reference, accuracy, way):
    """16-bit classes: little more than the right result rounded once."""
    if accuracy in MOST_ERROR:
        return MOST_ERROR["tf32" if way.tf32 else accuracy]
    return 1.1 * error_of(torch, reference, reference.to(getattr(torch, DTYPES[accuracy])))
