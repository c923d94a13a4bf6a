"""Options about features and their extractors, shared by several commands."""

import click

from aadml.cli.settings import flags_of, option_group
from aadml.feature_extraction.ground.json_values import Json

other_features_option = flags_of("aadml.search.build_index:build")("--allow-other-features", is_flag=True)
"""`--allow-other-features` of the commands that apply a model to a feature file."""


view_options = option_group(
    *(
        click.option(f"--{name}", help=f"View to use as {name}, if the layout does not define it.")
        for name in ("audio", "visual", "text")
    ),
    click.option(
        "--view",
        "views",
        multiple=True,
        metavar="NAME=VIEW",
        help="View to use as another modality, such as flow=raft. Repeat the option for further views.",
    ),
)
"""Options that select the views of a layout."""


def _options_of(
    _context: click.Context, _option: click.Parameter, settings: tuple[str, ...]
) -> dict[str, dict[str, Json]]:
    """Return the options of extractors by modality, parsed from `modality.key=value` with YAML values."""
    from aadml.configuration import strict_yaml
    from aadml.feature_extraction.ground.errors import InputError

    options: dict[str, dict[str, Json]] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        modality, _, key = name.partition(".")
        if not equals or not key or modality not in ("audio", "visual", "text"):
            raise InputError(
                f"--set {setting:.80} does not have the form MODALITY.KEY=VALUE; write audio.KEY=VALUE, "
                "visual.KEY=VALUE or text.KEY=VALUE"
            )
        try:
            options.setdefault(modality, {})[key.replace("-", "_")] = strict_yaml.load(value)
        except InputError as error:
            raise InputError(f"--set {setting:.80}: {str(error).removeprefix('line 1: ')}") from error
    return options


extractor_settings_option = click.option(
    "--set",
    "options",
    multiple=True,
    metavar="MODALITY.KEY=VALUE",
    callback=_options_of,
    help="Set an option of an extractor.",
)
"""`--set` of the commands that extract features."""
