"""Export of a model in memory, and of the model of a run."""

import aadml
from aadml.model.model import Model


def test_a_model_is_exported_from_memory_and_from_its_run(random_model, random_run, monkeypatch):
    monkeypatch.setattr(Model, "export", lambda self, output: (self.facts.label, output))
    assert aadml.export(random_model, "head.onnx") == aadml.export(random_run, "head.onnx") == ("cca", "head.onnx")
