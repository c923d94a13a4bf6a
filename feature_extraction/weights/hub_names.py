"""Names of pretrained networks: `hf:MODEL[@revision][#pooling]` is short for an extractor and three of its options."""

from pathlib import Path

from aadml.feature_extraction.ground.json_values import JsonObject

PREFIX = "hf:"


def expanded(name: str, modality: str) -> tuple[str, JsonObject]:
    """Read the name of an extractor.

    Args:
        name: an entry of a table, a place, or `hf:MODEL[@revision][#pooling]`, where MODEL is a folder or a name on the
            Hugging Face Hub.
        modality: that it is for.

    Returns:
        The entry of the table, and the options that the name gives.
    """
    if not name.startswith(PREFIX):
        return name, {}
    model, found = name.removeprefix(PREFIX), {}
    for sign, option in (("#", "pooling"), ("@", "revision")):
        before, _, after = model.rpartition(sign)
        if before and after and not Path(model).exists():
            model, found[option] = before, after
    return f"hf-{modality}", {"model": model, **found}


def without_folder(name: str) -> str:
    """Leave of the folder that `hf:FOLDER` names only its last part; a name on the hub stays as it is."""
    _, found = expanded(name, "text")
    model = str(found["model"])
    return name.replace(model, Path(model).resolve().name, 1) if Path(model).expanduser().exists() else name
