"""Turn a manifest of media into a feature file."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from aadml.cli.feature_options import extractor_settings_option
from aadml.cli.progress import JobBar, continues, note, note_without_features, warn
from aadml.cli.settings import flags_of
from aadml.cli.sweeps import command_line
from aadml.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from aadml.feature_extraction.jobs.extract import ExtractionOutcome

_flag = flags_of("aadml.feature_extraction.jobs.job:extract")


@click.command()
@click.argument("manifest", type=click.Path())
@_flag("-o", "--output", required=True, type=click.Path(), metavar="F.h5")
@_flag("--audio", metavar="NAME")
@_flag("--visual", metavar="NAME")
@_flag("--text", metavar="NAME")
@_flag("--recipe", metavar="NAME")
@extractor_settings_option
@_flag("--weights", metavar="auto|FILE|FOLDER|untrained")
@_flag("--windows", metavar="LENGTH[/STEP]")
@_flag("--engine", default="local", show_default=True, metavar="NAME")
@_flag("--workers", type=click.IntRange(min=1), metavar="N")
@_flag("--time-limit", default=120.0, show_default=True)
@_flag("--max-seconds", default=3600.0, show_default=True)
@_flag("--damaged", type=click.Choice(["keep", "drop"]), default="keep", show_default=True)
@click.option(
    "--shard",
    default="0/1",
    metavar="I/N",
    help="Process only shard I (from 0) of N into F.I-of-N.h5; `aadml merge -o F.h5` joins the shards.",
)
@_flag("--retry-failed", is_flag=True)
@_flag("--sequence", is_flag=True)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(manifest: str, output: str, shard: str, windows: str | None, as_json: bool, **options: Any) -> None:
    """Extract the features of the media in MANIFEST into a feature file.

    MANIFEST is a CSV file with the columns id,media,label,split or id,audio,visual,label,split. Media paths are
    relative to MANIFEST. The columns start and end (seconds) cut a segment of the media. Other columns are kept,
    and --text reads the column text or caption. MANIFEST may be at an address such as s3://BUCKET/FILE.csv.
    MANIFEST may also be a data set that contains the media: a Parquet file, a WebDataset tar, a folder saved by
    `datasets`, or hf:NAME on the Hugging Face Hub. Run the same command again to continue an interrupted job. No
    work is repeated. The exit status is 1 if a clip failed. F.h5.failures.csv lists the reasons.

    Only the modalities of --audio, --visual, --text or --recipe are extracted. Without these options, sound and
    pictures are extracted by extractors without weights. `--audio none` or `--visual none` omits a modality. A
    modality that every clip lacks is not written.

    NAME is an extractor of `aadml list extractors`, an import path package.module:name, or
    hf:MODEL[@revision][#pooling] for a pretrained network of transformers. MODEL is a folder, or a name on the
    Hugging Face Hub.
    """
    import aadml
    from aadml.feature_extraction.jobs.job import DEFAULTS, named_extractors
    from aadml.feature_extraction.jobs.shard_names import read_shard
    from aadml.feature_extraction.jobs.windows import read_windows, windowed
    from aadml.feature_extraction.manifest import open_manifest

    rows, part = open_manifest(manifest), read_shard(shard)
    if windows is not None:
        rows = windowed(rows, read_windows(windows), options["workers"])
    names = {modality: options[modality] for modality in ("audio", "visual", "text")}
    defaults = [name for modality, name in DEFAULTS.items() if names[modality] is None]
    if options["recipe"] is None and defaults and not named_extractors(names):
        note(f"no extractor is named, so the defaults without pretrained weights are used: {', '.join(defaults)}")
    work = f"extract of {len(rows.rows[part[0] :: part[1]])}"
    with continues(), JobBar() as bar:
        outcome = aadml.extract(
            rows, output, shard=part, command=command_line(),
            progress=lambda done, failed: bar.show(work, done, failed), **options,
        )  # fmt: skip
    _print(outcome, output, as_json)
    if outcome.failures:
        raise click.exceptions.Exit(1)


def _print(outcome: "ExtractionOutcome", output: str, as_json: bool) -> None:
    from aadml.feature_extraction.media.inputs import REASONS

    counts = Counter(failure.reason for failure in outcome.failures)
    good = outcome.clips - len(outcome.failures)
    _print_notes(outcome, as_json)
    if as_json:
        result = {
            "path": outcome.path,
            "modalities": [extractor.modality for extractor in outcome.extractors],
            "clips": outcome.clips,
            "ok": good,
            "failed": dict(counts),
            "lacking": dict(Counter(missing.modality for missing in outcome.lacking)),
            "warnings": len(outcome.warnings),
            "remarks": [list(warning) for warning in outcome.warnings],
            "reused": outcome.reused,
            "seconds": round(outcome.seconds, 3),
        }
        echo_json(result, indent=None)
        return
    kinds = ", ".join(f"{used.modality} {used.name} {used.dimension}-d" for used in outcome.extractors)
    rows = [("ok", good, kinds + (f" -> {outcome.path}" if outcome.path else ""))]
    rows += [(reason, counts[reason], meaning) for reason, meaning in REASONS.items() if counts[reason]]
    written = {extractor.modality for extractor in outcome.extractors}
    lacking = Counter((missing.modality, missing.reason) for missing in outcome.lacking)
    for (modality, reason), count in sorted(lacking.items()):
        lack = f"every clip lacks {modality}, so no {modality} features are written"
        if modality in written:
            lack = f"the clip is kept, and {modality} is masked"
        rows.append((reason, count, f"{lack}: {REASONS[reason]}"))
    rows.append(("all", outcome.clips, f"in {outcome.seconds:.1f} s, {outcome.reused:,} from an earlier call"))
    for name, count, meaning in rows:
        echo(f"{name:<17} {count:>7,}  {meaning}")
    if outcome.failures:
        again = "; pass --retry-failed to try these clips again" if counts.keys() - {"missing"} else ""
        echo(f"failed clips are listed in {outcome.path or output}.failures.csv{again}")
    if outcome.path is None:
        note_without_features(output)


def _print_notes(outcome: "ExtractionOutcome", as_json: bool) -> None:
    for name, remark in outcome.warnings[:5]:
        warn(f"{name!r}: {remark}")
    if len(outcome.warnings) > 5 and not as_json:
        warn(f"the number of further warnings about clips is {len(outcome.warnings) - 5}; pass --json to list all")
    for extractor in outcome.extractors:
        if extractor.parameters.get("weights") == "untrained":
            warn(f"{extractor.name} is UNTRAINED (random weights), as the feature file records")
        if "license" in extractor.about:
            title, terms = extractor.about.get("model", extractor.name), extractor.about["license"]
            note(f"the {extractor.modality} extractor is {title}; its license is {terms}")
