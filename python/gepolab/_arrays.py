"""NumPy arrays and PyTorch tensors as the library sees them: an address, a type and strides, no copies."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._library import InputError, Numbers, Tokens

_TYPES = {"float32": 1, "float64": 2}


def is_torch(array: Any) -> bool:
    """Whether it is a tensor of PyTorch, which is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def plain(array: Any, name: str, whole: bool = False) -> Any:
    """Lists as arrays, and with `whole` integers and booleans as float64; all else as it is."""
    if isinstance(array, (list, tuple)):
        try:
            array = np.asarray(array)
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} is a list, and not one of numbers with as many for each response: pad it, and give lengths= or mask=")
        if name != "mask":
            array = array.astype(np.float64)
    elif whole and is_torch(array) and not (array.is_floating_point() or array.is_complex()):
        array = array.double()
    elif whole and isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray) and array.dtype.kind in "biu":
        array = array.astype(np.float64)
    return array


def check_kind(array: Any, name: str) -> None:
    """Refuses what is no array, or one whose shape and elements are not those that it seems to have."""
    if not is_torch(array) and not isinstance(array, np.ndarray):
        raise InputError(f"{name} is a {type(array).__name__}; NumPy arrays and PyTorch tensors are taken")
    if is_torch(array) and array.is_nested:
        raise InputError(f"{name} is a nested tensor: hand over its values() with token_start, or pad it")
    if isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array: hand over its data and say which tokens count with mask=")


def facts(array: Any, name: str, dimensions: int) -> "tuple[int, str, tuple[int, ...], tuple[int, ...]]":
    """Address, name of the type, shape and strides (in elements) of an array that is left where it lies."""
    check_kind(array, name)
    if is_torch(array):
        if array.device.type != "cpu":
            raise InputError(f"{name} is on {array.device}: move it to the CPU (.cpu()), where libgepolab computes")
        if array.is_conj() or array.is_neg() or str(array.layout) != "torch.strided":
            raise InputError(f"{name} is a {array.layout} tensor or a lazy view: call .contiguous() or .resolve_neg()")
        address, type_name = array.data_ptr(), str(array.dtype).replace("torch.", "")
        shape, strides = tuple(array.shape), tuple(array.stride())
    else:
        if not array.dtype.isnative:
            raise InputError(f"{name} has bytes in the other order: convert with .astype(array.dtype.newbyteorder('='))")
        size = array.itemsize
        if any(stride % size for stride in array.strides) or array.ctypes.data % size:
            raise InputError(f"{name} is not aligned to its elements: copy it")
        address, type_name = array.ctypes.data, array.dtype.name
        shape, strides = array.shape, tuple(stride // size for stride in array.strides)
    if len(shape) != dimensions:
        raise InputError(f"{name} has shape {tuple(shape)}, and {dimensions} dimension{'s' * (dimensions > 1)} are expected")
    return address, type_name, shape, strides


def _type(name: str, type_name: str) -> int:
    if type_name not in _TYPES:
        raise InputError(f"{name} is {type_name}; float32 and float64 are taken: convert it, float16 loses log-probabilities")
    return _TYPES[type_name]


def tokens(array: Any, name: str, shape: "tuple[int, ...]") -> Tokens:
    """One number for each token: an array of the given shape, [responses, columns] or packed [tokens]."""
    if array is None:
        return Tokens()
    address, type_name, found, strides = facts(array, name, len(shape))
    kind = _type(name, type_name)
    if found != shape:
        raise InputError(f"{name} has shape {found}, and logp has {shape}")
    if len(shape) == 1:
        return Tokens(address, kind, 0, strides[0])
    return Tokens(address, kind, strides[0], strides[1])


def numbers(array: Any, name: str, n: int) -> Numbers:
    """One number for each response or group."""
    if array is None:
        return Numbers()
    address, type_name, found, strides = facts(array, name, 1)
    if found != (n,):
        raise InputError(f"{name} has shape {found}, and ({n},) is expected")
    return Numbers(address, _type(name, type_name), strides[0])


def empty_like(array: Any, shape: "tuple[int, ...]") -> Any:
    """An array of the kind and type of `array`, to be filled."""
    if is_torch(array):
        return sys.modules["torch"].empty(shape, dtype=array.dtype)
    return np.empty(shape, dtype=array.dtype)
