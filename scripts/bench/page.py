"""Tables of docs/lab/speed.md that scripts write between two comments with the name of the table."""

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Replace the text of a page between the comments of a table."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for '{name}': it takes the lines {start} and {end}")
    page.write_text(f"{before}{start}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
