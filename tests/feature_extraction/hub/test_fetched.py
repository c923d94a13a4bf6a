"""Files of a model of the hub, by a stand-in for its client: what is downloaded, and what each error says."""

from types import SimpleNamespace

import pytest

hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("transformers")

from huggingface_hub import errors  # noqa: E402

from aadml.feature_extraction.ground.errors import InputError  # noqa: E402
from aadml.feature_extraction.hub import snapshot  # noqa: E402


@pytest.fixture
def client(monkeypatch, tmp_path):
    """Set the files of the model, or the error of the hub; return the calls of downloads."""
    calls = []

    def client(files=(), error=None, cached=()):
        def model_info(model, revision):
            if error is not None:
                raise error
            return SimpleNamespace(siblings=[SimpleNamespace(rfilename=name) for name in files])

        def download(model, *, revision, allow_patterns, local_files_only=False):
            calls.append((revision, allow_patterns[len(snapshot._SMALL) :], local_files_only))
            for name in cached:
                (tmp_path / name).touch()
            return str(tmp_path)

        monkeypatch.setattr(hub, "HfApi", lambda: SimpleNamespace(model_info=model_info))
        monkeypatch.setattr(hub, "snapshot_download", download)
        return calls

    return client


@pytest.mark.parametrize(
    ("files", "weights", "wanted"),
    [
        (["config.json", "pytorch_model.bin", "model.safetensors"], True, ["model.safetensors"]),
        (["a/model.safetensors", "pytorch_model.bin"], True, ["pytorch_model.bin"]),
        (["model.safetensors"], False, []),
    ],
)
def test_one_kind_of_weights_is_downloaded(client, tmp_path, files, weights, wanted):
    calls = client(files)
    assert snapshot._fetched("owner/tiny", "v1", weights=weights) == (tmp_path, tmp_path.name)
    assert calls == [("v1", wanted, False)]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (None, "owner/tiny: contains no weights for `transformers`"),
        (
            errors.GatedRepoError,
            "owner/tiny: access is restricted; accept its terms at https://huggingface.co/owner/tiny",
        ),
        (errors.RevisionNotFoundError, "owner/tiny: has no revision 'v1' on the Hugging Face Hub; choose another"),
        (errors.RepositoryNotFoundError, "owner/tiny: is neither a folder nor a model on the Hugging Face Hub; check"),
        (OSError, "is neither a folder nor in the cache, and the Hugging Face Hub is unreachable"),
    ],
)
def test_an_error_of_the_hub_states_what_to_do(client, error, says):
    calls = client(["config.json"], None if error is None else error.__new__(error))
    with pytest.raises(InputError, match=says):
        snapshot._fetched("owner/tiny", "v1", weights=True)
    assert [local for *_, local in calls] == ([True] * len(snapshot._WEIGHTS) if error is OSError else [])


def test_the_cache_is_used_if_the_hub_is_unreachable(client, tmp_path):
    calls = client(error=OSError("no route"), cached=["model.safetensors"])
    assert snapshot._fetched("owner/tiny", None, weights=True) == (tmp_path, tmp_path.name)
    assert {local for *_, local in calls} == {True}
