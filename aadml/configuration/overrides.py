"""Overrides of a config before it is resolved: dotted keys, and the shorthand of losses ("aa-hard-triplet")."""

from collections.abc import Mapping, Sequence

from aadml.configuration import strict_yaml
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, as_yaml, without
from aadml.feature_extraction.ground.registry import JoinedRegistry, require_entry
from aadml.losses import LOSSES
from aadml.objective.recipes import RECIPES, Recipe
from aadml.proxies import PROXIES, prefix_of

IDENTITY = "identity"
"""Name of the proxy that leaves every anchor unchanged."""


Values = Mapping[str, object]
"""Nested plain values of a config by key, as in YAML."""


Settings = Values | Sequence[str] | None
"""Values of any keys of the config, as {"proxy.k": 5} or ["proxy.k=5"]; None for no value."""


Flag = str | int | Sequence[str] | None
"""Value of a flag; None if the flag is not set."""


def flag_settings(flags: Mapping[str, Flag]) -> dict[str, Flag]:
    """Return the flags whose value is not None."""
    return {key: value for key, value in flags.items() if value is not None}


def setting_pairs(settings: Settings, flag: str = "--set") -> list[tuple[str, object]]:
    """Return settings as keys and values; `flag` is the command-line flag of the settings, for messages.

    Raises:
        InputError: `settings` is not of the type `Settings`, or a string is not "key=value" with YAML as value.
    """
    if isinstance(settings, Mapping):
        return list(settings.items())
    listed = () if settings is None else settings
    are_texts = isinstance(listed, Sequence) and all(isinstance(item, str) for item in listed)
    if isinstance(listed, str) or not are_texts:
        raise InputError(
            f'settings: {settings!r:.80} is not a mapping or a list of settings; pass {{"proxy.k": 5}} or ["proxy.k=5"]'
        )
    return [parse_setting(text, flag) for text in listed]


def parse_setting(text: str, flag: str = "--set") -> tuple[str, object]:
    """Parse "key=value", the argument of `--set` or of another `flag`; the value is YAML.

    Raises:
        InputError: the text has no key or no "=", or the value is not YAML.
    """
    path, sign, value = text.partition("=")
    if not sign or not path.strip():
        raise InputError(f"{flag} {text} does not have the form key=value; pass, for example, proxy.k=5")
    try:
        return path.strip(), strict_yaml.load(value)
    except InputError as error:
        raise InputError(f"{flag} {text}: {str(error).removeprefix('line 1: ')}") from error


def with_setting(values: Values, path: str, value: object) -> dict[str, object]:
    """Return a copy of `values` with `value` at the dotted path `path` ("proxy.k").

    The path `loss` accepts a shorthand. "aa-triplet" also sets the proxy, and "hard-triplet" also sets the
    selection. A loss without the prefix of a proxy sets the proxy `identity`. The options of the previous loss are
    dropped, as are the selection and the directions of a previous recipe. The path `loss.name`, or `loss` with a
    mapping that has a name, also replaces a previous recipe, but keeps the proxy. The paths `proxy` and `proxy.name`
    replace the proxy of a shorthand.

    Raises:
        InputError: a part of the path is neither a mapping nor a name, or the loss or the proxy is invalid.
    """
    if path == "loss.name" or (path == "loss" and _name_of(value) is not None):
        values = _without_recipe(values)
    if path == "loss" and isinstance(value, str):
        current = values.get("proxy") if proxy_prefix_of(value) else IDENTITY
        proxy = {} if current is None else {"proxy": current}
        return {key: inner for key, inner in values.items() if key != "loss"} | expand_loss({"loss": value, **proxy})
    head, _, rest = path.partition(".")
    unnamed = path == "proxy" and isinstance(value, Mapping) and "name" not in value
    if path in ("proxy", "proxy.name") and "loss" in values and not unnamed:
        values = {**values, "loss": _without_prefix(values["loss"])}
    if not rest:
        return dict(values) | {head: value}
    inner = values.get(head, {})
    if isinstance(inner, str):
        inner = {"name": inner}
    if not isinstance(inner, Mapping):
        raise InputError(f"{path}: {head} is {as_yaml(inner)}, which has no key '{rest}'; leave out {path}")
    return dict(values) | {head: with_setting(inner, rest, value) if "." in rest else dict(inner) | {rest: value}}


def named(section: object, where: str) -> tuple[str, OptionValues]:
    """Return the name and the options of a section that chooses an entry of a registry.

    Raises:
        InputError: the section is neither a name nor a mapping with a name and only strings as keys.
    """
    if isinstance(section, str):
        return section, OptionValues()
    if (
        isinstance(section, Mapping)
        and isinstance(section.get("name"), str)
        and all(isinstance(k, str) for k in section)
    ):
        return str(section["name"]), without(OptionValues(**section), ("name",))
    raise InputError(f"{where} is {as_yaml(section)}; pass a name, or a mapping with a 'name' and only strings as keys")


def expand_loss(values: Values) -> dict[str, object]:
    """Return `values` with the shorthand of the loss ("aa-hard-triplet") replaced by the implied sections.

    Sections that are already in `values` override those of a recipe. Values without a loss, and values in which a
    recipe is already expanded, are returned unchanged.

    Raises:
        InputError: the loss is unknown, or the section `loss` or `proxy` is invalid.
    """
    values = dict(values)
    if "loss" not in values or "recipe" in values:
        return values
    name, options = named(values["loss"], "loss")
    if prefix := proxy_prefix_of(name):
        name = name.removeprefix(prefix)
        anchored = next(key for key in PROXIES if prefix_of(key) == prefix)
        section = values.get("proxy", anchored)
        if isinstance(section, Mapping) and "name" not in section:
            section = {"name": anchored, **section}
        proxy, proxy_options = named(section, "proxy")
        others = proxy not in (anchored, IDENTITY)  # options of another proxy do not apply
        values["proxy"] = {**({} if others else vars(proxy_options)), "name": anchored}
    if name not in RECIPES:
        require_entry(JoinedRegistry(LOSSES, RECIPES), name, "loss")
        return values | {"loss": {"name": name, **vars(options)}}
    recipe = RECIPES[name]
    return {**_beside_loss(recipe), **values, "recipe": name, "loss": {**recipe.loss, **vars(options)}}


def is_recipe(values: Values) -> bool:
    """Return whether complete values have a recipe whose loss, selection and directions are not replaced.

    Options of the loss and of the selection may differ.
    """
    recipe = _recipe_of(values)
    if recipe is None or _name_of(values.get("loss")) != recipe.loss["name"]:
        return False
    return _unchanged(values, recipe) == _beside_loss(recipe).keys()


def _without_recipe(values: Values) -> Values:
    """Return `values` without a recipe, its options of the loss, and its selection and directions if not replaced."""
    recipe, loss = _recipe_of(values), values.get("loss")
    dropped = {"recipe"} if recipe is None else {"recipe"} | _unchanged(values, recipe)
    remaining = {key: inner for key, inner in values.items() if key not in dropped}
    if recipe is not None and isinstance(loss, Mapping):
        remaining["loss"] = {key: option for key, option in loss.items() if key not in recipe.loss}
    return remaining


def _beside_loss(recipe: Recipe) -> Values:
    """Return the selection and the directions that a recipe defines, by key."""
    sections = {"selection": recipe.selection, "directions": recipe.directions}
    return {key: value for key, value in sections.items() if value is not None}


def _unchanged(values: Values, recipe: Recipe) -> set[str]:
    """Return the keys of `_beside_loss` whose names in `values` are those of the recipe."""
    return {key for key, value in _beside_loss(recipe).items() if _names_of(values.get(key)) == _names_of(value)}


def _names_of(section: object) -> tuple[object, ...]:
    """Return the name in a section, or the names in a list."""
    return (*section,) if isinstance(section, list | tuple) else (_name_of(section),)


def _recipe_of(values: Values) -> Recipe | None:
    name = values.get("recipe")
    return RECIPES.get(name) if isinstance(name, str) else None


def _name_of(section: object) -> object:
    """Return the name in a section that chooses an entry, which may be only a name; None without a name."""
    return section.get("name") if isinstance(section, Mapping) else section if isinstance(section, str) else None


def _without_prefix(loss: object) -> object:
    """Return a section `loss` without the prefix of a proxy in its name ("triplet" instead of "aa-triplet")."""
    name = _name_of(loss)
    if not isinstance(name, str):
        return loss
    plain = name.removeprefix(proxy_prefix_of(name))
    return {**loss, "name": plain} if isinstance(loss, Mapping) else plain


def proxy_prefix_of(loss: str) -> str:
    """Return the prefix, such as "aa-", that denotes a proxy in the name of a loss; "" without such a prefix."""
    if loss in LOSSES or loss in RECIPES:
        return ""
    prefixes = [prefix_of(proxy) for proxy in PROXIES]
    return next((prefix for prefix in prefixes if prefix and loss.startswith(prefix)), "")
