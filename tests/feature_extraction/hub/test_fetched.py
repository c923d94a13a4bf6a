"""Files of a model of the hub, by a stand-in for its client: what is downloaded, and what each error says."""

import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("transformers")

from huggingface_hub import errors  # noqa: E402

from aadml.feature_extraction.ground.consent import named_in, trusting  # noqa: E402
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
        (None, "owner/tiny contains no weights for `transformers`"),
        (
            errors.GatedRepoError,
            "owner/tiny: access is restricted; accept its terms at https://huggingface.co/owner/tiny",
        ),
        (errors.RevisionNotFoundError, "owner/tiny has no revision 'v1' on the Hugging Face Hub; choose another"),
        (
            errors.RepositoryNotFoundError,
            "owner/tiny is neither a folder nor a public model on the Hugging Face Hub; check the name, or log in",
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


def test_a_download_that_a_file_names_needs_consent(client, monkeypatch, tmp_path):
    calls = client(["model.safetensors"], cached=["model.safetensors"])
    snapshot.require_download_consent("owner/tiny", "abc")
    assert {local for *_, local in calls} == {True}
    client(["model.safetensors"])
    (tmp_path / "model.safetensors").unlink()
    for model in (None, 3, str(tmp_path), "0" * 64, "owner"):
        snapshot.require_download_consent(model, "abc")
    with named_in("model.json"), pytest.raises(InputError) as refused:
        snapshot.require_download_consent("owner/tiny", "abc")
    assert str(refused.value) == (
        "hf:owner/tiny@abc was not opened, because the address comes from model.json and not from you; run `aadml "
        "weights get hf:owner/tiny@abc` first, or consent with --trust-code (in Python: trust_code=True)"
    )
    with pytest.raises(InputError, match="hf:owner/tiny was not opened"):
        snapshot.require_download_consent("owner/tiny", None)
    with trusting():
        snapshot.require_download_consent("owner/tiny", None)
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


@pytest.fixture
def model(tmp_path):
    """A folder of a model whose weights are in two files."""
    contents = {
        "config.json": '{"model_type": "bert", "hidden_size": 3, "torch_dtype": "float32", "_name_or_path": "x"}',
        "model-2.safetensors": "b", "model-1.safetensors": "a", "pytorch_model.bin": "c", "vocab.txt": "words",
        "model.safetensors.index.json": "{}", "README.md": "---\nlicense: mit\n---\n", "other.py": "1 / 0",
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / "tiny" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "tiny" / name).write_text(content)
    return tmp_path / "tiny"


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_snapshot_has_the_checksums_of_its_files_and_of_the_settings_of_its_network(model):
    found = snapshot.find(str(model), None)
    assert (found.model, found.revision, found.license, found.model_type) == ("tiny", None, "mit", "bert")
    assert [path.name for path in found.weights] == ["model-1.safetensors", "model-2.safetensors"]
    assert found.weights_checksum() == sha(sha("a") + sha("b"))
    assert found.config_checksum() == sha('{"hidden_size": 3, "model_type": "bert"}')
    read = ["README.md", "config.json", "model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"]
    assert found.checksums() == {name: sha((model / name).read_text()) for name in [*read, "vocab.txt"]}
    assert found.small_files() == {name: (model / name).read_bytes() for name in ("config.json", "vocab.txt")}
    assert (found.settings("config.json")["hidden_size"], found.settings("none.json")) == (3, {})
    origin = {"model": "tiny", "license": "mit", "files": found.checksums()}
    assert found.provenance() == origin | {"source": {"model": found.weights_checksum()}}
    of_hub = replace(found, model="owner/tiny", revision="abc").provenance()
    commit = {"revision": "abc", "source": {"model": "owner/tiny", "revision": "abc"}}
    assert of_hub == origin | {"model": "owner/tiny"} | commit
    for name in ("model-1.safetensors", "model-2.safetensors"):
        (model / name).unlink()
    assert snapshot.find(str(model), None).weights_checksum() == sha("c")
    (model / "pytorch_model.bin").unlink()
    assert snapshot._opened(model, "tiny", None, weights=False).weights == ()
    with pytest.raises(
        InputError, match=r"tiny contains no weights \(model.*safetensors or pytorch_model.*bin\); copy"
    ):
        snapshot.find(str(model), None)


@pytest.mark.parametrize(
    ("card", "license_of"),
    [
        ("---\nlicense: other\nlicense_name: ours\n---\n", "ours"), ("---\ntags: [a]\n---\n", "not stated"),
        ("# no metadata", "not stated"), ("---\nlicense: [\n---\n", "not stated"), (None, "not stated"),
    ],
)  # fmt: skip
def test_the_license_is_that_of_the_model_card(model, card, license_of):
    (model / "README.md").unlink() if card is None else (model / "README.md").write_text(card)
    assert snapshot.find(str(model), None).license == license_of


def test_weights_are_found_by_their_checksum_in_the_folder_of_their_last_use(model, tmp_path, monkeypatch):
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    found = snapshot.find(str(model), None)
    checksum, register = found.weights_checksum(), tmp_path / "cache" / "weights" / "models.json"
    with pytest.raises(
        InputError, match=f"weights {checksum[:16]}... were never used on this machine, or have been mo"
    ):
        snapshot.find(checksum, None)
    register.parent.mkdir(parents=True)
    for damaged in ("[]", "{", json.dumps({"0" * 64: "elsewhere"})):
        register.write_text(damaged)
        snapshot.remember(found, checksum)
        assert snapshot.find(checksum, None).folder == model
    assert json.loads(register.read_text()) == {"0" * 64: "elsewhere", checksum: str(model)}
    written = register.stat().st_mtime_ns
    snapshot.remember(found, checksum)
    assert register.stat().st_mtime_ns == written
    with pytest.raises(InputError, match="were never used on this machine, or have been moved"):
        snapshot.find("0" * 64, None)


@pytest.mark.parametrize("name", ["owner", "a/b/c", "/owner/tiny"])
def test_a_name_on_the_hub_has_an_owner(name):
    with pytest.raises(InputError, match=f"^{name} is neither a folder nor a name on the Hugging Face Hub; pass a fol"):
        snapshot.find(name, None)
