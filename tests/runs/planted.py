"""Run folders in which files of somebody else lie already."""

from aadml.runs.manifest import LOG, read_manifest

FOREIGN = {"thesis.tex": b"Once upon a time", "figures/state-1.safetensors": b"a drawing", ".x.partial.json": b"{}"}


def plant(folder):
    for name, data in FOREIGN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def own(folder):
    """Names and contents of what is not foreign."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in files.items() if name in FOREIGN} == {
        name: data for name, data in FOREIGN.items() if files.keys() & FOREIGN
    }
    return {name: path.read_bytes() for name, path in files.items() if name not in FOREIGN}


def committed(folder):
    """What the manifest says that the run holds."""
    manifest = read_manifest(folder)
    return {name: manifest.read(name) for name in manifest.files} | {LOG: manifest.read_log()}
