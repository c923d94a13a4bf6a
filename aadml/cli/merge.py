"""`aadml merge`: the shards of one job become one feature file."""

import click


@click.command()
@click.argument("shards", nargs=-1, type=click.Path(), metavar="[F.0-of-N.h5 F.1-of-N.h5 ...]")
@click.option("-o", "--output", required=True, type=click.Path(), metavar="F.h5", help="The feature file to write.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(shards: tuple[str, ...], output: str, as_json: bool) -> None:
    """Join all shards of one extraction job, after checking that they are complete and match.

    Without shards, those of F.h5 beside it are taken (F.0-of-N.h5 and so on). Exit status 1 if any clip of the job
    failed.
    """
    import json

    from feature_extraction.merge import merge
    from feature_extraction.shard_names import shard_paths

    parts = shard_paths(shards, output)
    content, failures = merge(parts, output)
    if as_json:
        click.echo(json.dumps({"path": output, "ok": len(content.ids), "failed": len(failures)}))
    else:
        kinds = ", ".join(f"{name} {values.shape[1]}-d" for name, values in content.features.items())
        click.echo(f"{len(content.ids):,} clips of {len(parts)} shards, {len(failures):,} failed, {kinds} -> {output}")
        if failures:
            click.echo(f"the failed clips: {output}.failures.csv")
    if failures:
        raise click.exceptions.Exit(1)
