"""Describe the contents of a feature file in any layout."""

from typing import Any

import click

from aadml.cli.feature_options import view_options
from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_json

_flag = flags_of("aadml.data.inspection.inspection:inspect")
_SHOWN = 20


@click.command(name="inspect")
@click.argument("path", metavar="FILE", type=click.Path())
@_flag("--layout")
@view_options
@_flag("--near-duplicates", is_flag=True)
@_flag("--media", type=click.Path(), metavar="MANIFEST")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: str, as_json: bool, **options: Any) -> None:
    """Describe FILE by counts, ranges, duplicates, origin and warnings.

    FILE is a feature file in any layout, or mteb:TASK for a retrieval task. Two clips of different splits are
    near-duplicates if the clips differ only by noise or encoding. The search for near-duplicates compares features
    and the fingerprints of `aadml extract`. The first 20 pairs are printed, and --json lists all pairs. The
    distances of a pair are shares of the usual distance of nearest neighbors.
    """
    from dataclasses import asdict

    import aadml
    from aadml.feature_extraction.foreign.tables import shown_address

    contents: Any = aadml.inspect(path, **options)
    if as_json:
        echo_json(asdict(contents), ensure_ascii=False)
        return
    if path.startswith("mteb:"):
        echo(*_task_lines(contents))
        return
    echo(*_lines(shown_address(path), contents))
    for warning in contents.warnings:
        echo(f"warning: {warning}", err=True)


def _task_lines(contents: Any) -> list[str]:
    lines = []
    for split, figures in contents.splits.items():
        values = ", ".join(
            f"{key.replace('_', ' ')} {value if isinstance(value, int) else f'{value:.4f}'}"
            for key, value in vars(figures).items()
        )
        lines.append(f"{split}: {values}")
    return lines + [
        f"repeated {kind}: {', '.join(f'{count} in {place}' for place, count in counts.items())}"
        for kind, repeats in contents.duplicates.items()
        for counts in (repeats.within, repeats.across)
        if counts
    ]


def _lines(path: str, contents: Any) -> list[str]:
    splits = ", ".join(f"{count} {split}" for split, count in contents.splits.items())
    lines = [f"{path}: {contents.clips} clips, {len(contents.classes)} classes ({splits})"]
    for name, figures in contents.modalities.items():
        lines.append(
            f"{name}: {figures['dimensions']}-d, {figures['minimum']:.4g} to {figures['maximum']:.4g}, "
            f"mean {figures['mean']:.4g}, standard deviation {figures['standard_deviation']:.4g}, "
            f"{figures['zeros']:.1%} zeros"
        )
        origin = contents.provenance.get(name, {})
        lines.append(f"  from {origin.get('extractor', 'an unknown extractor')}")
    for name, counts in contents.present.items():
        shares = ", ".join(f"{count} of {contents.splits[split]} {split}" for split, count in counts.items())
        lines.append(f"{name} is present in {shares} clips; the other clips are masked")
    for kind, duplicates in contents.duplicates.items():
        within = ", ".join(f"{count} in {split}" for split, count in duplicates.within.items())
        across = ", ".join(f"{count} in {pair}" for pair, count in duplicates.across.items())
        lines.append(f"duplicates of {kind}: {within}; shared: {across}")
    lines += [_recipe_line(match) for match in contents.recipes]
    lines += _duplicate_lines(contents)
    lines += _sequence_lines(contents)
    if contents.columns:
        lines.append(f"columns: {', '.join(contents.columns)}")
    if not contents.classes:
        return lines
    width = max(map(len, contents.classes))
    lines.append(f"{'class':<{width}}  " + "  ".join(f"{split:>6}" for split in contents.splits))
    for name, counts in contents.classes.items():
        lines.append(f"{name:<{width}}  " + "  ".join(f"{count:>6}" for count in counts.values()))
    return lines


def _recipe_line(match: Any) -> str:
    missing = f"; absent weights of other recipes: {', '.join(match.missing)}" if match.missing else ""
    if match.distance is None:
        return f"{match.modality} recipe: unknown, no known recipe can be computed{missing}"
    clips = f"distance {match.distance:.2g}, {match.clips} clips"
    if match.recipe:
        return f"{match.modality} recipe: {match.recipe} ({clips}){missing}"
    return f"{match.modality} recipe: unknown; the nearest known recipe is {match.nearest} ({clips}){missing}"


def _duplicate_lines(contents: Any) -> list[str]:
    pairs = contents.near_duplicates
    lines = [
        f"near-duplicate: {pair.split} {pair.id} is {pair.other_split} {pair.other} "
        f"({', '.join(f'{kind} {distance:.2f}' for kind, distance in pair.distances.items())})"
        for pair in pairs[:_SHOWN]
    ]
    if len(pairs) > _SHOWN:
        lines.append(f"and {len(pairs) - _SHOWN} more near-duplicates (--json lists all)")
    return lines


def _sequence_lines(contents: Any) -> list[str]:
    """Return lines that describe the rows over time and explain how to join the rows of two modalities."""
    lines = []
    for name, rows in contents.sequences.items():
        line = f"{name} sequence: {rows['rows']} rows, {rows['fewest']} to {rows['most']} per clip"
        if rows.get("step") is not None:
            line += f", one row every {rows['step']:.4g} s"
        if rows.get("earliest") is not None:
            line += f", the first rows at {rows['earliest']:.4g} to {rows['latest']:.4g} s"
        if "step" not in rows:
            line += "; the rows have no times (version 1), so extract the clips again to join rows by time"
        lines.append(line)
    if any("step" in rows for rows in contents.sequences.values()):
        lines.append(
            "join by time: for clip i, the row of modality M at second t is M_offsets[i] + "
            "searchsorted(M_times[M_offsets[i]:M_offsets[i + 1]], t, side='right') - 1 (in Python: "
            "sequences[M].rows_at(i, [t])). Use the same t for both modalities, and s + 0.5 for segment s of AVE's "
            "labels."
        )
    return lines
