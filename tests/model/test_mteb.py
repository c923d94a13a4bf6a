"""Models as encoders of mteb, on a miniature of its audio-visual retrieval."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import aadml
from aadml.comparison.relevance import Grouped
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError
from aadml.retrieval.directions import score_direction
from aadml.retrieval.scores import score_source

PAGE = (Path(__file__).parents[2] / "docs" / "mteb.md").read_text(encoding="utf-8")
(SESSION,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SMALL = {"network.hidden": [16], "training.batch": 20, "training.epochs": 3}


def test_the_session_of_the_page_is_python():
    compile(SESSION, "session.py", "exec")


class MetaStandIn:
    """mteb's ModelMeta, as far as it is used here."""

    @staticmethod
    def create_empty(facts):
        return SimpleNamespace(**facts)


@pytest.fixture
def stand_in(monkeypatch):
    """mteb, if it is not installed."""
    monkeypatch.setitem(sys.modules, "mteb", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mteb.models", SimpleNamespace(ModelMeta=MetaStandIn))


@pytest.fixture(scope="module")
def mteb():
    return pytest.importorskip("mteb", reason="mteb is not installed; it is no part of the development environment")


class Kinds:
    """Metadata of a task of one kind of items."""

    def __init__(self, *kinds):
        self.kinds = kinds

    def get_modalities(self, prompt_type):
        return list(self.kinds)


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    manifest = aadml.sample_data(folder, clips=60, seconds=0.5)
    aadml.extract(manifest, folder / "clips.h5")
    return folder


def task_of(ids, labels, folder):
    """Sound of every second clip asks for pictures of its class among the other clips."""
    from datasets import Audio, Dataset, Video
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    def side(rows, column, kind):
        files = [str(folder / "clips" / f"{ids[row]}.mp4") for row in rows]
        made = Dataset.from_dict({"id": [ids[row] for row in rows], column: files})
        return made.cast_column(column, kind(decode=False))

    order = np.argsort(labels, kind="stable").tolist()
    asking, ranked = order[::2], order[1::2]
    relevant = {ids[q]: {ids[g]: int(labels[q] == labels[g]) for g in ranked} for q in asking}

    class Miniature(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Miniature", description="Sound to pictures of its class.", dataset={"path": "NA", "revision": "NA"},
            type="Any2AnyRetrieval", category="a2v", modalities=["audio", "video"], eval_splits=["test"],
            eval_langs=["eng-Latn"], main_score="ndcg_at_10", date=("2024-01-01", "2024-01-01"), domains=[],
            task_subtypes=[], license="cc-by-4.0", annotations_creators="derived", dialect=[], sample_creation="found",
            bibtex_citation="", reference="https://example.org",
        )  # fmt: skip

        def load_data(self, **options):
            self.dataset = {
                "default": {
                    "test": {
                        "queries": side(asking, "audio", Audio),
                        "corpus": side(ranked, "video", Video),
                        "relevant_docs": relevant,
                        "top_ranked": None,
                    }
                }
            }
            self.data_loaded = True

    return Miniature(), asking, ranked


@pytest.mark.slow
def test_mteb_scores_a_model_as_this_toolkit_does(mteb, clips):
    model = aadml.fit(clips / "clips.h5", config="sample", loss="triplet", settings=SMALL)
    shown = aadml.read(clips / "clips.h5").train
    labels = shown.labels.numpy()
    task, asking, ranked = task_of(shown.ids, labels, clips)
    found = mteb.evaluate(model.to_mteb(), task, cache=None, encode_kwargs={"batch_size": 4}, co2_tracker=False)
    ndcg = found.task_results[0].scores["test"][0]["ndcg_at_10"]
    vectors = (model.embed(**{m: shown[m][rows]}) for m, rows in (("audio", asking), ("visual", ranked)))
    source = score_source(*vectors, model.method.similarity)
    ours = score_direction(source, Grouped(labels[asking], labels[ranked]), extra=["ndcg@10"])
    figure = ours.figures["metrics", "ndcg@10"]
    share = len(ours.ids) / len(asking)  # mteb counts a query to which nothing is relevant as 0
    assert ndcg == pytest.approx(figure * share, abs=2e-5)
    assert np.isfinite(ndcg)
    assert ours.tie_rate == 0


def test_files_in_batches_are_embedded_as_by_the_model(stand_in, clips):
    model = aadml.fit(clips / "clips.h5", config="sample", loss="triplet", settings=SMALL)
    served = model.to_mteb("org/name")
    assert (served.mteb_model_meta.name, served.mteb_model_meta.modalities) == ("org/name", ["audio", "video", "image"])
    paths = sorted((clips / "clips").glob("*.mp4"))[:3]
    items = [{"path": str(paths[0]), "bytes": None}] + [{"path": p.name, "bytes": p.read_bytes()} for p in paths[1:]]
    batches = [{"audio": items[:2]}, {"audio": items[2:]}]
    rows = served.encode(batches, task_metadata=Kinds("audio"), hf_split="test", hf_subset="default")
    np.testing.assert_allclose(rows, model.embed(audio=[str(path) for path in paths]), atol=1e-6)
    assert np.allclose(served.similarity(rows, rows).diagonal(), served.similarity_pairwise(rows, rows), atol=1e-6)
    with pytest.raises(InputError, match="but the model embeds one of audio, visual at a time"):
        served.encode([], task_metadata=Kinds("text"))
    with pytest.raises(InputError, match=r"decoded ndarray.*decode=False"):
        served.encode([{"audio": [np.zeros(3)]}], task_metadata=Kinds("audio"))


def test_models_of_one_file_have_different_revisions(stand_in, tmp_path):
    models = [aadml.fit("synthetic:pairs:shared=0.8", settings=SMALL, seed=seed) for seed in (0, 1)]
    revisions = [model.to_mteb().mteb_model_meta.revision for model in models]
    assert len(set(revisions)) == 2
    again = aadml.load(models[0].save(tmp_path / "saved")).to_mteb().mteb_model_meta.revision
    assert again == revisions[0]


def test_without_mteb_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    monkeypatch.setitem(sys.modules, "mteb.models", None)
    with pytest.raises(MissingExtraError, match="needs mteb, which is not installed; run pip install 'mteb'"):
        aadml.fit("synthetic:ave", method="cca").to_mteb()
