"""Fresh processes for the audit, in which an encoder has not embedded anything before."""

import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError

Vectors = Mapping[Any, Tensor]
"""Modality -> (n, e)."""

_FAILED = b"!"
_DONE = b"."


def in_fresh_process(work: Callable[[], Sequence[Vectors]], *, seconds: float) -> list[dict[str, Tensor]]:
    """Run `work` in a fork of this process and return its results.

    Changes of state in `work` (a scaler fitted on its first call, a cache) do not reach this process or the next one.

    Args:
        work: function that returns a list of embeddings by modality.
        seconds: time after which the process is killed.

    Raises:
        InputError: the work failed, or took too long.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work_and_exit, args=(work, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            raise InputError(f"the encoder took longer than {seconds:g} s; raise --time-limit")
        data = receiver.recv_bytes()
    except EOFError:
        raise InputError("the process of the encoder ended without a result") from None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if data[:1] != _DONE:
        raise InputError(data[1:].decode(errors="replace"))
    size = int.from_bytes(data[1:9], "little")
    shapes: list[list[str]] = json.loads(data[9 : 9 + size])
    tensors = load_tensors(data[9 + size :])
    return [{name: tensors[f"{number}.{name}"] for name in names} for number, names in enumerate(shapes)]


def _work_and_exit(work: Callable[[], Sequence[Vectors]], sender: Connection) -> None:
    """Run `work` in the child, send its result or error, and exit without any cleanup of the parent's state."""
    try:
        torch.set_num_threads(1)  # threads do not survive a fork
        results = work()
        names = json.dumps([list(vectors) for vectors in results]).encode()
        tensors = {f"{i}.{m}": v.contiguous().clone() for i, vectors in enumerate(results) for m, v in vectors.items()}
        data = _DONE + len(names).to_bytes(8, "little") + names + save_tensors(tensors)
    except InputError as error:
        data = _FAILED + str(error).encode()
    except BaseException as error:  # the user's encoder may raise anything
        data = _FAILED + " ".join(f"{type(error).__name__}: {error}".split()).encode()
    with suppress(OSError):
        sender.send_bytes(data)
    os._exit(0)
