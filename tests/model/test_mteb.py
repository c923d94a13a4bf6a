"""The wrapper of docs/mteb.md, tried on a miniature of mteb's audio-visual retrieval."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import aadml
from aadml.comparison.relevance import Grouped
from aadml.retrieval.directions import score_direction
from aadml.retrieval.scores import score_source

PAGE = (Path(__file__).parents[2] / "docs" / "mteb.md").read_text(encoding="utf-8")
WRAPPER, SESSION = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
SMALL = {"network.hidden": [16], "training.batch": 20, "training.epochs": 3}


def test_the_page_holds_a_whole_wrapper_of_about_forty_lines():
    compile(WRAPPER, "served.py", "exec")
    compile(SESSION, "session.py", "exec")
    code = [line for line in WRAPPER.splitlines() if line.strip()]
    assert len(code) <= 50


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The class that the page shows, from a file as a user saves it."""
    pytest.importorskip("mteb", reason="mteb is not installed; it is no part of the development environment")
    place = tmp_path_factory.mktemp("served") / "served.py"
    place.write_text(WRAPPER, encoding="utf-8")
    described = importlib.util.spec_from_file_location("served", place)
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module.Served


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
def test_mteb_scores_a_served_model_as_this_toolkit_does(served, clips, tmp_path):
    import mteb

    model = aadml.fit(clips / "clips.h5", config="sample", loss="triplet", settings=SMALL)
    shown = aadml.read(clips / "clips.h5").train
    labels = shown.labels.numpy()
    task, asking, ranked = task_of(shown.ids, labels, clips)
    found = mteb.evaluate(served(model), task, cache=None, encode_kwargs={"batch_size": 4}, co2_tracker=False)
    ndcg = found.task_results[0].scores["test"][0]["ndcg_at_10"]
    vectors = (model.embed(**{m: shown[m][rows]}) for m, rows in (("audio", asking), ("visual", ranked)))
    source = score_source(*vectors, model.method.similarity)
    ours = score_direction(source, Grouped(labels[asking], labels[ranked]), extra=["ndcg@10"])
    figure = ours.figures["metrics", "ndcg@10"]
    share = len(ours.ids) / len(asking)  # mteb counts a query to which nothing is relevant as 0
    assert ndcg == pytest.approx(figure * share, abs=2e-5)
    assert np.isfinite(ndcg)
    assert ours.tie_rate == 0


@pytest.mark.slow
def test_a_model_is_loaded_from_its_folder_and_refuses_what_it_does_not_embed(served, clips, tmp_path):
    model = aadml.fit(clips / "clips.h5", config="sample", loss="triplet", settings=SMALL)
    again = served(model.save(tmp_path / "model"))
    rows = aadml.read(clips / "clips.h5").test
    one = np.asarray(again.model.embed(audio=rows["audio"][:3]))
    assert np.allclose(again.similarity(one, one).diagonal(), again.similarity_pairwise(one, one), atol=1e-6)

    class Words:
        def get_modalities(self, prompt_type):
            return ["text"]

    with pytest.raises(ValueError, match="one of audio, visual at a time"):
        again.encode([], task_metadata=Words(), hf_split="test", hf_subset="default")
