"""Where to compute: the CPU, or a GPU that torch sees."""

from tokenspace.errors import ParameterError


def check_device(device: str) -> str:
    """Return a device; raises `ParameterError` for one that is unknown, or torch doesn't see."""
    if device not in ("auto", "cpu", "cuda"):
        raise ParameterError(f"device is {device!r}; use auto, cpu or cuda")
    if device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ParameterError(f"no GPU: torch {torch.__version__} sees none; use --device cpu")
    return device


def place(device: str) -> str:
    """Choose where to compute, a GPU for `auto` if there is one; `ParameterError` without it."""
    import torch

    if check_device(device) != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"
