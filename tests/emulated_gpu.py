"""A GPU that is not there: tensors that say they are on `cuda`, computed on the CPU, and a list of what the host reads.

PyTorch's FakeTensorMode makes such tensors too, but without values: it ends at the first read, and nothing that it
computes can be compared with the CPU. It is below this mode, so that PyTorch does not look for a driver.
"""

import traceback
from contextlib import ExitStack, contextmanager, nullcontext
from unittest.mock import patch

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

CUDA = torch.device("cuda", 0)
aten = torch.ops.aten
SIZED_BY_VALUES = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)
BY_INDEX = (aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default)


class OnDevice(torch.Tensor):
    """Autograd, which would look for a stream of `cuda`, sees a meta tensor, and Python the device."""

    @staticmethod
    def __new__(cls, value):
        strides = {"strides": value.stride(), "storage_offset": value.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(cls, value.size(), **strides, dtype=value.dtype, device="meta")
        made.value = value
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: CUDA)

    def record_stream(self, stream):
        stream.log.append("used")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} outside of emulated_gpu()")


class EmulatedGPU(TorchDispatchMode):
    """`reads` are the operations that make the host wait for the device, and where they are called."""

    def __init__(self):
        super().__init__()
        self.reads = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        here = any(isinstance(leaf, OnDevice) for leaf in tree_leaves((args, kwargs)))
        target = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else None
        to_host = here and (target == "cpu" or (func is aten.copy_.default and not isinstance(args[0], OnDevice)))
        if here and (to_host or self._sized_by_values(func, args)):
            frames = [f for f in traceback.extract_stack() if "crosstail" in f.filename]
            self.reads.append(f"{func} in {frames[-1].filename}:{frames[-1].lineno}" if frames else str(func))
        given, options = tree_map_only(OnDevice, lambda tensor: tensor.value, (args, kwargs))
        options.pop("pin_memory", None)
        if target is not None:
            options["device"] = torch.device("cpu")
        with _disable_current_modes():
            found = func(*given, **options)
        if to_host or not (here or target in ("cuda", "meta")):
            return found
        found = tree_map_only(torch.Tensor, OnDevice, found)
        return return_and_correct_aliasing(func, args, kwargs, found) if here else found

    @staticmethod
    def _sized_by_values(func, args):
        if func in BY_INDEX:  # a mask is a read, row numbers are none
            return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])
        return any(tag in func.tags for tag in SIZED_BY_VALUES)


class Stream:
    """Notes in a log what streams and events do, in order."""

    log: list[str] = []

    def __init__(self, device=None):
        Stream.log.append("stream")

    def wait_stream(self, other):
        self.log.append("wait")

    def record_event(self):
        self.log.append("event")
        return self

    def synchronize(self):
        self.log.append("synchronize")


@contextmanager
def emulated_gpu():
    """`log` of the mode has what its streams do."""
    with ExitStack() as stack:
        now = Stream()
        fakes = {"Stream": Stream, "current_stream": lambda device: now, "stream": lambda stream: nullcontext()}
        for name, fake in fakes.items():
            stack.enter_context(patch.object(torch.cuda, name, fake))
        stack.enter_context(patch.object(torch.Tensor, "pin_memory", lambda tensor: tensor))
        stack.enter_context(FakeTensorMode())
        gpu = stack.enter_context(EmulatedGPU())
        gpu.log = Stream.log = []
        yield gpu


def to_gpu(module):
    """Move a module; `Module.to` changes tensors in place, which cannot change their class."""
    for part in module.modules():
        for name, value in part._parameters.items():
            if value is not None:
                part._parameters[name] = nn.Parameter(value.detach().to(CUDA), value.requires_grad)
        for name, value in part._buffers.items():
            part._buffers[name] = None if value is None else value.to(CUDA)
    return module
