"""Changes of a config before it is resolved: dotted keys, and the shorthand of losses ("aa-hard-triplet")."""

from collections.abc import Mapping, Sequence

from aadml.configuration import strict_yaml
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.options import as_yaml
from aadml.feature_extraction.ground.registry import JoinedRegistry, require_entry
from aadml.losses import LOSSES
from aadml.objective.recipes import RECIPES
from aadml.proxies import PROXIES, prefix_of

IDENTITY = "identity"
"""The proxy by which every clip stands for itself."""


Settings = JsonObject | Sequence[str] | None
"""Any keys of the config, as {"proxy.k": 5} or as ["proxy.k=5"]; None for none."""


def setting_pairs(settings: Settings, flag: str = "--set") -> list[tuple[str, Json]]:
    """Return settings as keys and values; `flag` is the name of the option, for messages.

    Raises:
        InputError: neither a mapping nor texts of the form "key=value".
    """
    if isinstance(settings, Mapping):
        return list(settings.items())
    listed = () if settings is None else settings
    if isinstance(listed, str) or not isinstance(listed, Sequence) or not all(isinstance(text, str) for text in listed):
        raise InputError(f'settings: {settings!r} given; {{"proxy.k": 5}} or ["proxy.k=5"] is wanted')
    return [parse_setting(text, flag) for text in listed]


def parse_setting(text: str, flag: str = "--set") -> tuple[str, Json]:
    """Read "key=value" of `--set`, or of another flag; the value is YAML.

    Raises:
        InputError: no "=", or a value that is not YAML.
    """
    path, sign, value = text.partition("=")
    if not sign or not path.strip():
        raise InputError(f"{flag} {text}: write it as key=value, for example proxy.k=5")
    try:
        return path.strip(), strict_yaml.load(value)
    except InputError as error:
        raise InputError(f"{flag} {text}: {str(error).removeprefix('line 1: ')}") from error


def with_setting(values: JsonObject, path: str, value: Json) -> dict[str, Json]:
    """Return `values` with the key at a dotted path ("proxy.k") set.

    `loss` alone takes a shorthand: "aa-triplet" also sets the proxy, "triplet" takes it away, "hard-triplet" brings its
    selection; the options of the loss before are dropped.

    Raises:
        InputError: the path leads through something that holds no keys.
    """
    if path == "loss" and isinstance(value, str):
        current = values.get("proxy") if proxy_prefix_of(value) else IDENTITY
        proxy = {} if current is None else {"proxy": current}
        return _without_loss(values) | expand_loss({"loss": value, **proxy})
    head, _, rest = path.partition(".")
    if not rest:
        return dict(values) | {head: value}
    inner = values.get(head, {})
    if isinstance(inner, str):
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        raise InputError(f"{path}: {head} is {as_yaml(inner)}, in which there is no '{rest}'")
    return dict(values) | {head: with_setting(inner, rest, value) if "." in rest else dict(inner) | {rest: value}}


def named(given: Json, where: str) -> tuple[str, JsonObject]:
    """Return the name and the options of a section that chooses an entry of a table.

    Raises:
        InputError: neither a name nor a mapping with one.
    """
    if isinstance(given, str):
        return given, {}
    if isinstance(given, Mapping) and isinstance(given.get("name"), str) and all(isinstance(key, str) for key in given):
        return str(given["name"]), {key: value for key, value in given.items() if key != "name"}
    raise InputError(f"{where}: {as_yaml(given)} given; a name, or a mapping with a 'name', is possible")


def expand_loss(values: JsonObject) -> dict[str, Json]:
    """Replace the shorthand of a loss ("aa-hard-triplet") by the sections that it stands for.

    What stands in `values` already wins over what a recipe brings.

    Raises:
        InputError: no such loss.
    """
    values = dict(values)
    if "loss" not in values or "recipe" in values:
        return values
    name, options = named(values["loss"], "loss")
    if prefix := proxy_prefix_of(name):
        name = name.removeprefix(prefix)
        anchored = next(key for key in PROXIES if prefix_of(key) == prefix)
        proxy, proxy_options = named(values.get("proxy", anchored), "proxy")
        others = proxy not in (anchored, IDENTITY)  # options of another proxy say nothing to this one
        values["proxy"] = {**({} if others else proxy_options), "name": anchored}
    if name not in RECIPES:
        require_entry(JoinedRegistry(LOSSES, RECIPES), name, "loss")
        return values | {"loss": {"name": name, **options}}
    recipe = RECIPES[name]
    brought = {"selection": recipe.selection, "directions": recipe.directions}
    brought = {key: value for key, value in brought.items() if value is not None}
    return brought | values | {"recipe": name, "loss": {**recipe.loss, **options}}


def proxy_prefix_of(loss: str) -> str:
    """Return the prefix by which a loss's name asks for a proxy ("aa-"), "" where it asks for none."""
    if loss in LOSSES or loss in RECIPES:
        return ""
    prefixes = [prefix_of(proxy) for proxy in PROXIES]
    return next((prefix for prefix in prefixes if prefix and loss.startswith(prefix)), "")


def _without_loss(values: JsonObject) -> dict[str, Json]:
    """Drop the loss, and where it was a recipe, the selection and the directions that it had brought."""
    dropped = ("loss", "recipe", "selection", "directions") if "recipe" in values else ("loss",)
    return {key: value for key, value in values.items() if key not in dropped}
