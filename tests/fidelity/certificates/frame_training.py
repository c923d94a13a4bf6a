"""Whole trainings of frames against words, by the released code of Xie et al."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from aadml.comparison import Comparison
from aadml.configuration.files import open_config
from aadml.data.sources.loading import Loading
from aadml.data.sources.padding import Padded
from aadml.methods.audio_text.frames_words import CrnnInput, FramesAgainstWords
from aadml.methods.audio_text.options import RelevanceOptions
from aadml.methods.audio_text.text_input import UNTRAINED, WordInput
from aadml.methods.training.loop import _Loop
from aadml.objective import Objective
from aadml.retrieval.frame_word import frame_word_scores
from certificates.audio_text import SPELLED, XIE, strategy_objective
from certificates.certificate import Arrays, Certificate, Errors, error, worst
from certificates.extraction import CRNN_NAMES, drawn_weights
from certificates.training import FOLDER, curve, settings, trained

HERE = {spelled: strategy for strategy, spelled in SPELLED.items()}
COMPARED = ("loss curve", "gradient norms", "weights after the last step", "test scores", "rates of the plateau")


@dataclass(frozen=True)
class Sequences:
    """Stored sequences, which a batch pads to its longest; `full` hides from the network what is padding."""

    values: Tensor
    lengths: Tensor
    full: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def select(self, index: Tensor) -> "Sequences":
        return replace(self, values=self.values[index], lengths=self.lengths[index])

    def batch(self, index: Tensor) -> Padded:
        lengths = self.lengths[index]
        longest = lengths.max()
        shown = longest.expand(len(index)) if self.full else lengths
        return Padded(self.values[index, :longest], shown, torch.ones(len(index), dtype=torch.bool))


def sides(arrays: Arrays, split: str, *, full: bool = False) -> dict[str, Sequences]:
    """Return the sound and words of a split, a row for each caption."""
    clips = arrays[f"in/{split}_clip_of_caption"].long()
    frames, words = arrays[f"in/{split}_frames"].long(), arrays[f"in/{split}_word_counts"].long()
    sound = Sequences(arrays[f"in/{split}_log_mel"][clips], frames[clips], full)
    return {"audio": sound, "text": Sequences(arrays[f"in/{split}_words"].long(), words)}


def here(name: str) -> str:
    """Return the name in the learner of a weight of the source."""
    layer, _, kind = name.removeprefix("audio_enc.").rpartition(".")
    return f"audio.{CRNN_NAMES.get(layer, layer.replace('gru', 'recurrent'))}.{kind}"


def shortened(values: Tensor) -> Tensor:
    """Return the 400 entries of a tensor that the references keep."""
    places = torch.linspace(0, values.numel() - 1, min(400, values.numel()), dtype=torch.float64)
    return values.flatten()[places.round().long().unique()]


def as_drawn(of: Objective, arrays: Arrays) -> Objective:
    """Let an objective select the negatives that the source drew, step by step: captions, then sounds."""
    drawn: Iterator[Tensor] = iter(
        row for step in zip(arrays["step/drawn_negative_text"], arrays["step/drawn_negative_audio"], strict=True)
        for row in step
    )  # fmt: skip

    def chosen(comparison: Comparison, generator: torch.Generator) -> Comparison:
        only = torch.zeros_like(comparison.negatives)
        only[torch.arange(len(only)), next(drawn).long()] = True
        return replace(comparison, negatives=only)

    of.selection = chosen
    return of


def untrained(arrays: Arrays) -> FramesAgainstWords:
    """Build the learner of the method `xie` with the first weights and the word vectors of a reference."""
    strategy = HERE[arrays["source/sampling"][0]]
    objective = strategy_objective(strategy, float(arrays["option/margin"]))
    of = FramesAgainstWords(
        CrnnInput(dimension=32, dropout=0.0),
        WordInput(UNTRAINED, dimension=32, seed=0, pooled=False),
        as_drawn(objective, arrays) if strategy == "random" else objective,
        RelevanceOptions(legacy_padding=True), guides=[], loading=Loading(), batch=8,
    ).double()  # fmt: skip
    weights = {here(name): values for name, values in drawn_weights(arrays).items()}
    missing, unexpected = of.load_state_dict(weights, strict=False)
    assert not unexpected
    assert not set(missing) & {name for name, _ in of.named_parameters()}
    of.text.vectors = arrays["in/word_vectors"]
    return of


def rates(arrays: Arrays) -> Tensor:
    """Return the rate of each epoch by the schedule of `configs/xie_clotho.yaml`, from the source's losses, (epochs,).

    The source also validates before training.
    """
    shipped = open_config("xie_clotho").resolve().training
    loop, found = _Loop(*[None] * 4, shipped, *[None] * 2), []  # type: ignore[arg-type]
    for loss in arrays["epoch/valid_loss"][:-1].tolist():
        loop._lower_on_plateau(-loss)
        found.append(max(shipped.learning_rate * loop.progress.learning_rate_factor, shipped.schedule_floor))
    return torch.tensor(found, dtype=torch.float64)


def _xie(arrays: Arrays) -> Errors:
    of = untrained(arrays)
    stored: Mapping[str, Any] = {f"in_train_{m}": values for m, values in sides(arrays, "train", full=True).items()}
    stored |= {"batch_order": arrays["step/batch_items"], "labels_train": arrays["in/train_clip_of_caption"]}
    each = arrays["step/lr"][::3]
    schedule = settings("xie_clotho", stored, 3, schedule="constant")
    steps = trained(of, stored, schedule, 3, ("audio", "text"), factors=(each / schedule.learning_rate).tolist())
    names, weights = {name: here(name) for name in arrays["recipe_names"]}, of.state_dict()
    tested = sides(arrays, "test")
    index = torch.arange(40)
    with of.evaluated():
        vectors = {m: of.embed(side.batch(index), m) for m, side in tested.items()}
    norms = [curve(steps, names[name]) for name in arrays["parameter_names"]]
    return {
        "loss curve": error(curve(steps, "audio loss"), arrays["step/loss"]),
        "gradient norms": worst(list(zip(norms, arrays["step/gradient_norms"].T, strict=True))),
        "weights after the last step": worst(
            [(shortened(weights[names[name]]), arrays[f"weights_60/{name}"]) for name in names]
        ),
        "test scores": error(frame_word_scores(vectors["audio"], vectors["text"]), arrays["test/scores"]),
        "rates of the plateau": error(rates(arrays), each),
    }


FRAME_TRAINING_CERTIFICATES = tuple(
    Certificate(
        f"training of xie, {HERE[spelled]}" + (", padded" if file.endswith("padded") else ""),
        f"audio_text/train_xie_{file}", f"{XIE}, `exec_trial`, `train`", COMPARED, _xie, folder=FOLDER,
        deviations="The source also validates before training; the rates are those of its losses. MAP is not "
        f"compared: in float32, as scores are here, some tie.{words}",
    )
    for file, spelled, words in (
        ("hard", "hard-NS", ""),
        ("semi_hard", "semi-hard-NS", ""),
        ("random", "random-NS", " On the negatives that the source drew."),
        ("hard_padded", "hard-NS", " With `legacy_padding`, and with batch norms over the padding, as released."),
    )
)  # fmt: skip
