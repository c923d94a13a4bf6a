"""Files of a model of the hub, by a stand-in for its client: what is downloaded, and what each error says."""

from types import SimpleNamespace

import pytest

hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("transformers")

from huggingface_hub import errors  # noqa: E402

from aadml.feature_extraction.ground.errors import InputError  # noqa: E402
from aadml.feature_extraction.hub import snapshot  # noqa: E402
from aadml.feature_extraction.hub.pictures import _begins  # noqa: E402
from aadml.feature_extraction.hub.saved_tower import SavedTower  # noqa: E402
from aadml.feature_extraction.jobs import weights as jobs_weights  # noqa: E402
from aadml.feature_extraction.media import Pictures  # noqa: E402


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
        (
            errors.RepositoryNotFoundError,
            "owner/tiny: is neither a folder nor a public model on the Hugging Face Hub; check the name, or log in",
        ),
        (OSError, "is neither a folder nor in the cache, and its download from the Hugging Face Hub failed"),
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


@pytest.mark.parametrize(
    ("revision", "base"), [(None, "hf:sums#mean"), ("abc", "hf:owner/tiny@abc#mean")], ids=["folder", "hub"]
)
def test_the_weights_under_adapters_are_named_by_commit_or_checksum(revision, base):
    assert SavedTower("owner/tiny", revision, "MIT", {}, "mean", "sums", 12).base == base


@pytest.mark.parametrize(
    ("seconds", "begins"), [(4.0, [0, 1, 2]), (2.5, [0, 1, 1.5]), (9.0, [0, 1, 2]), (0.2, [0, 0, 0])]
)
def test_windows_of_pictures_begin_one_after_another_and_the_last_ends_with_the_clip(seconds, begins):
    inputs = Pictures(2.0, limit=6)
    assert _begins(2, inputs, 3, seconds).tolist() == begins


@pytest.mark.parametrize("revision", ["abc", None])
def test_the_files_of_a_model_of_the_hub_are_listed_with_their_checks(monkeypatch, tmp_path, revision):
    found = SimpleNamespace(
        model="owner/tiny", revision=revision, folder=tmp_path, license="MIT", checksums=lambda: {"a.json": "1"}
    )
    calls = []
    monkeypatch.setattr(jobs_weights, "find", lambda *call: calls.append(call) or found)
    (state,) = jobs_weights._of_the_hub("get", "hf:owner/tiny@abc" if revision else "hf:owner/tiny", None)
    assert calls == [("owner/tiny", revision)]
    url, check = (
        ("https://huggingface.co/owner/tiny", "the size, by huggingface_hub; revision abc") if revision
        else (str(tmp_path), "a folder of this machine; no published checksum")
    )  # fmt: skip
    path = str(tmp_path / "a.json")
    assert state == jobs_weights.WeightState("a.json", path, True, "1", check, "MIT", url)


@pytest.mark.parametrize(("action", "folder"), [("list", None), ("get", "here")])
def test_models_of_the_hub_are_only_downloaded(action, folder):
    with pytest.raises(InputError, match=f"weights {action} hf:owner/tiny: models of .* can only be downloaded; run"):
        jobs_weights._of_the_hub(action, "hf:owner/tiny", folder)
