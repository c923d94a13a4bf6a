"""Fresh processes of the audit. The encoder of a fresh process has not yet embedded any item."""

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Checkpoint
from aadml.model.packing import pack_tensors, unpack_tensors

Vectors = Mapping[Any, Tensor]
"""Modality -> (n, e)."""


@dataclass(frozen=True)
class Results:
    """Results of a process.

    Attributes:
        vectors: embeddings of each request, by modality.
        channels: descriptions of possible channels of data to the encoder, besides the input.
    """

    vectors: list[dict[str, Tensor]]
    channels: tuple[str, ...]


def in_fresh_process(
    work: Callable[[], Sequence[Vectors]], *, seconds: float, channels: Callable[[], Sequence[str]] = tuple
) -> Results:
    """Run `work` in a fork of this process and return its results.

    Changes of state in `work`, such as a cache or a scaler fitted on the first call, reach neither this process nor a
    later fork. At the end, the fork and its child processes are killed, and their temporary files are removed.

    Args:
        work: function that returns a list of embeddings by modality.
        seconds: time after which the fork is killed.
        channels: function that is called in the fork after `work`, and returns the channels.

    Raises:
        InputError: the work failed, or took too long.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    folder = tempfile.TemporaryDirectory()
    process = context.Process(target=_work_and_exit, args=(work, channels, sender, folder.name))
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            raise InputError(f"a process of the audit took longer than {seconds:g} s; raise --time-limit")
        received = unpack_tensors(receiver.recv_bytes(), Path("embeddings"))
    except EOFError:
        raise InputError(
            "the process of the encoder ended without a result; check the encoder for a crash or a lack of memory"
        ) from None
    finally:
        _end(process)
        receiver.close()
        folder.cleanup()
    if "error" in received.facts:
        raise InputError(str(received.facts["error"]))
    results = cast(list[list[str]], received.facts["modalities"])
    vectors = [{m: received.tensors[f"{number}.{m}"] for m in modalities} for number, modalities in enumerate(results)]
    return Results(vectors, tuple(cast(list[str], received.facts["channels"])))


def _end(process: BaseProcess) -> None:
    assert process.pid is not None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the process and its children
    process.kill()
    process.join()


def _work_and_exit(
    work: Callable[[], Sequence[Vectors]], channels: Callable[[], Sequence[str]], sender: Connection, folder: str
) -> None:
    """Run `work` in the child, send its result or error, and exit without cleaning up the state of the parent."""
    tempfile.tempdir = folder
    os.setpgid(0, 0)
    try:
        torch.set_num_threads(1)  # threads do not survive a fork
        results = work()
        tensors = {f"{number}.{m}": v for number, vectors in enumerate(results) for m, v in vectors.items()}
        data = pack_tensors(
            Checkpoint(tensors, {"modalities": [list(vectors) for vectors in results], "channels": [*channels()]})
        )
    except InputError as error:
        data = pack_tensors(Checkpoint({}, {"error": str(error)}))
    except BaseException as error:  # the user's encoder may raise anything
        data = pack_tensors(Checkpoint({}, {"error": " ".join(f"{type(error).__name__}: {error}".split())}))
    with suppress(OSError):
        sender.send_bytes(data)
    os._exit(0)
