"""One run on several processes: torch.distributed, started by torchrun, plain all-reduce."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tokenspace.errors import ParameterError


@contextmanager
def processes() -> Iterator[str]:
    """Join the processes that torchrun started; yields this one's device. Alone, does nothing.

    >>> with processes() as device:
    ...     print(process())
    (0, 1)
    """
    cuda = torch.cuda.is_available()
    if "WORLD_SIZE" not in os.environ:
        yield "cuda" if cuda else "cpu"
        return
    device = f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if cuda else "gloo")
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def process() -> tuple[int, int]:
    """This process's number and how many there are."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def shares(batch: int, micro: int | None) -> list[slice]:
    """This process's rows of a batch, in parts of `micro`.

    Raises ParameterError where they don't come out even.

    >>> shares(8, 4)
    [slice(0, 4, None), slice(4, 8, None)]
    """
    rank, world = process()
    size = micro or max(batch // world, 1)
    if batch % (world * size):
        raise ParameterError(
            f"batch = {batch} on {world} processes in parts of {size}: it must be a multiple of "
            f"{world * size}."
        )
    mine = batch // world
    return [slice(start, start + size) for start in range(rank * mine, (rank + 1) * mine, size)]


def average(weights: list[Tensor], loss: Tensor) -> Tensor:
    """Replace the gradients of the weights by their mean over processes; returns the mean loss."""
    world = process()[1]
    if world == 1:
        return loss
    loss = loss.detach().clone()
    grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
    flat = parameters_to_vector([*grads, loss])
    distributed.all_reduce(flat)
    vector_to_parameters(flat / world, [*grads, loss])
    for weight, grad in zip(weights, grads, strict=True):
        weight.grad = grad
    return loss
