"""Fidelity of the rows of the AADML paper's tables, and readings of Equation 7, as stored in `fidelity.yaml`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aadml.reports.published import read_paper


@dataclass(frozen=True)
class RowFidelity:
    """Relation of a row to its source.

    Attributes:
        kind: a key of `FidelityTable.kinds`.
        held: part of the method -> subject of the certificate that compares this part with its source or a second
            implementation.
        reading: interpretation ("reading") of Equation 7; empty for rows without anchor-aware proxies.
        remark: difference from the source, or the reason for the kind.
    """

    kind: str
    held: Mapping[str, str] = field(default_factory=dict)
    reading: str = ""
    remark: str = ""

    @property
    def title(self) -> str:
        """Kind, followed by the reading of Equation 7 in parentheses if the row has a reading."""
        return f"{self.kind} ({self.reading})" if self.reading else self.kind

    @property
    def sentences(self) -> str:
        """Sentence with the parts in `held`, followed by the remark; empty for a row without parts and remark."""
        held = f"Agrees in {', '.join(self.held)}." if self.held else ""
        return " ".join(filter(None, (held, self.remark)))


@dataclass(frozen=True)
class FidelityTable:
    """Relation of all rows to their sources.

    Attributes:
        kinds: kind of a row -> its meaning.
        parts: parts of a method, in the order of docs/fidelity.md.
        methods: rows of table 1, by name.
        losses: rows of tables 2 and 3, by name.
        readings: method or preset -> reading of Equation 7.
    """

    kinds: Mapping[str, str]
    parts: tuple[str, ...]
    methods: Mapping[str, RowFidelity]
    losses: Mapping[str, RowFidelity]
    readings: Mapping[str, str]

    def of(self, kind: str) -> Mapping[str, RowFidelity]:
        """Return the rows of a table, "methods" or "losses", by name."""
        return {"methods": self.methods, "losses": self.losses}[kind]

    def legend(self, kind: str, items: Iterable[str]) -> list[tuple[str, str]]:
        """Return (kind, meaning) for each kind of the rows `items`, then (row, text) for rows with text.

        The text of a row is its `sentences`.
        """
        rows = {item: self.of(kind)[item] for item in items}
        used = {row.kind for row in rows.values()}
        meanings = [(name, meaning) for name, meaning in self.kinds.items() if name in used]
        return meanings + [(item, row.sentences) for item, row in rows.items() if row.sentences]

    def reading(self, item: str) -> str:
        """Return the short name, such as "R3, live", of the reading of Equation 7 in a method or preset."""
        return self.readings[item].partition(":")[0]


FIDELITY = read_paper(FidelityTable, "fidelity")
READINGS = tuple(name for name in FIDELITY.readings if name not in FIDELITY.methods)
"""Presets of the readings of Equation 7 that are not a row of table 1."""
