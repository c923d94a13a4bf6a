"""Messages of an isolated encoder."""

import io

import numpy as np

from aadml.protocols import isolated_encoder


def test_arrays_of_a_message_come_back_in_one_order():
    stream = io.BytesIO()
    isolated_encoder._write(stream, {name: np.zeros(2) for name in ("visual", "text", "state", "audio")})
    for _ in range(20):
        stream.seek(0)
        assert list(isolated_encoder._receive(stream)) == ["audio", "state", "text", "visual"]
