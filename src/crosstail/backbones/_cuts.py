"""Cut a network in two behind one of its stages."""

from typing import Any

from torch import Tensor, fx, nn


class _OfOne(nn.Module):
    """A network without further arguments, on which tracing would stop."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.network(x)
        return found


class _Tracer(fx.Tracer):
    """Traces what surrounds a module; all other modules stay whole, so that they do what they do in the network."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self.module = module

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not self.module.startswith(f"{module_qualified_name}.")


def cut(network: nn.Module, module: str) -> tuple[nn.Module, nn.Module]:
    """What a network computes up to a module's output, and what it makes of that; they share its weights."""
    whole, behind = _OfOne(network), f"network.{module}"
    graph = _Tracer(behind).trace(whole)
    return _part(whole, graph, behind, front=True), _part(whole, graph, behind, front=False)


def _part(network: nn.Module, graph: fx.Graph, module: str, *, front: bool) -> nn.Module:
    own = fx.Graph()
    end: Any = own.graph_copy(graph, {})
    (behind,) = [node for node in own.nodes if node.op == "call_module" and node.target == module]
    begin = next(node for node in own.nodes if node.op == "placeholder")
    if not front:
        with own.inserting_after(begin):
            behind.replace_all_uses_with(own.placeholder("activations"))
    own.output(behind if front else end)
    part = fx.GraphModule(network, own)
    part.graph.eliminate_dead_code()
    if not front:
        begin = next(iter(part.graph.nodes))
        if begin.users:
            raise ValueError("what follows needs more than the activations there")
        part.graph.erase_node(begin)
    part.delete_all_unused_submodules()
    used = {str(node.target) for node in part.graph.nodes if node.op == "get_attr"}
    inner = part.get_submodule("network")
    for values in (inner._parameters, inner._buffers):
        for name in [name for name in values if f"network.{name}" not in used]:
            del values[name]
    part.recompile()
    return part


class WithOutput(nn.Module):
    """The output of a network, and that of its first part."""

    def __init__(self, front: nn.Module, tail: nn.Module) -> None:
        super().__init__()
        self.front, self.tail = front, tail

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        activations = self.front(x)
        return self.tail(activations), activations
