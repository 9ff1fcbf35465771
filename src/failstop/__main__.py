"""The command line: thin commands over the harness, their records rendered by `reports`.

Exit codes: 0 all as promised; 1 a violation; 2 bad usage; 3 no violation, but something was left inconclusive, or
nothing was judged at all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

try:
    import typer
    from rich.console import Console
except ModuleNotFoundError as missing:
    sys.stderr.write(f"the command line needs the package {missing.name}; pip install 'failstop[cli]'\n")
    raise SystemExit(2) from None

from failstop.layering import check_layer, replay_word
from failstop.peering import peers
from failstop.planners import catalogue
from failstop.planners.toolset import MISBEHAVIOURS
from failstop.properties import evidence, run_audit
from failstop.properties.check import Variation, check
from failstop.properties.driver import last_line
from failstop.properties.layers import LAYERS
from failstop.properties.targets import TARGETS, UnknownTarget, load
from failstop.proving import prove
from failstop.reports import console as report
from failstop.runtime.stops import ConfigurationError
from failstop.speaking import (
    EXIT_CODES,
    Evidence,
    Json,
    must_be_known,
    must_be_writable,
    refuse,
    say,
    say_json,
    with_progress,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from failstop.planners.catalogue import Planner
    from failstop.properties.target import AnyTarget

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)

Planners = Annotated[str | None, typer.Option("--planners", metavar="MODULE", help="Load planners of yours.")]
Pin = Annotated[
    str | None, typer.Option(metavar="HASH", help="The hash of an event known to be written: was anything cut off?")
]
Layer = Annotated[
    list[str] | None,
    typer.Option("--layer", help=f"chaos (the planners), {', '.join(LAYERS)}; may be given several times."),
]
DepthOption = Annotated[
    Literal["quick", "deep"], typer.Option("--depth", help="How far machines, schedules and stress go.")
]
LogFile = Annotated[
    Path,
    typer.Argument(metavar="RUN.jsonl", help="The audit log of a run.", exists=True, dir_okay=False, readable=True),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"failstop {version('failstop')}")
        raise typer.Exit


@app.callback()
def about(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which one this is.")
    ] = False,
) -> None:
    """Agent limits you can prove: attack a runtime with misbehaving planners, and read what its runs left behind."""


@app.command("check")
def check_command(
    target: Annotated[str, typer.Argument(help="A target, or package.module:attribute of yours.")] = "failstop",
    planner: Annotated[list[str] | None, typer.Option("--planner", metavar="NAME", help="Only this one.")] = None,
    planners: Planners = None,
    tools: Annotated[
        str | None, typer.Option(metavar="MISBEHAVIOUR", help=f"Make every tool misbehave: {', '.join(MISBEHAVIOURS)}.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of chance, where there is chance.")] = 0,
    layer: Layer = None,
    depth: DepthOption = "quick",
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", metavar="NAME", help="Only this scenario or machine of the layers."),
    ] = None,
    as_json: Json = False,
    folder: Evidence = Path("evidence"),
) -> None:
    """Play the planners, or other layers, against TARGET and say which promises held; 3: something was inconclusive."""
    chosen_layers = layer or ["chaos"]
    for name in chosen_layers:
        must_be_known("--layer", name, ("chaos", *LAYERS))
    runtime = _target(target)
    records: list[evidence.Record] = []
    if "chaos" in chosen_layers:
        records += _play(runtime, target, planner or [], planners, tools, seed, folder, quiet=as_json)
    for name in dict.fromkeys(each for each in chosen_layers if each != "chaos"):
        file = folder / f"{name}-{_file_name(runtime.name)}.json"
        records += check_layer(name, runtime, target, depth, scenario or [], file, quiet=as_json)
    if as_json:
        say_json(evidence.document(records))
    raise typer.Exit(EXIT_CODES[evidence.worst(record.verdict for record in records)])


def _play(
    runtime: AnyTarget,
    target: str,
    planner: Sequence[str],
    planners: str | None,
    tools: str | None,
    seed: int,
    folder: Path,
    *,
    quiet: bool,
) -> list[evidence.Record]:
    chosen = _chosen(_known_planners(planners), planner)
    if tools is not None:
        must_be_known("--tools", tools, MISBEHAVIOURS)
    variation = Variation(seed, tools, planners, target)
    logs = folder / "runs" / _file_name(runtime.name)
    file = folder / f"chaos-{_file_name(runtime.name)}.json"
    must_be_writable(file, logs)
    records = [
        _played(each, runtime, variation, logs)
        for each in with_progress(chosen, f"checking {runtime.name}", len(chosen))
    ]
    # What was not played this time is kept; all that the same command once found about planners now gone is not.
    kept = [each for each in written(file) if planner or each.about.get("tools") != tools]
    evidence.write(file, evidence.merged(kept, records))
    if not quiet:
        say(lambda: report.print_check(Console(), records, f"seed {seed}, evidence in {folder}"))
    return records


app.command("prove")(prove)
app.command("peers")(peers)


@app.command("planners")
def planners_command(planners: Planners = None, as_json: Json = False) -> None:
    """List the planners: what each tries, its limits, and the stop it must end in."""
    known = list(_known_planners(planners).values())
    if as_json:
        say_json(json.dumps({"records": [_described(each) for each in known]}, indent=2))
    else:
        say(lambda: report.print_planners(Console(), [_described(each) for each in known]))


@app.command("replay")
def replay_command(
    log: Annotated[
        str, typer.Argument(metavar="RUN.jsonl|TOKEN", help="The audit log of a run, or what a finding is told by.")
    ],
    pin: Pin = None,
    as_json: Json = False,
) -> None:
    """Rebuild a run from its log alone, without a planner or a model; or show a finding again, exit code 1 if it is."""
    if log.startswith(("schedules/", "machines/")):
        comes_again, told = replay_word(log, _target)
        typer.echo(told)
        raise typer.Exit(1 if comes_again else 0)
    file = Path(log)
    if not file.is_file():
        refuse("RUN.jsonl", f"{log!r} does not exist, or is no file; a token begins with schedules/ or machines/")
    record = run_audit.retell(file, pin)
    if as_json:
        say_json(evidence.document([record]))
    else:
        say(lambda: report.print_story(Console(), record))
    raise typer.Exit(EXIT_CODES[record.verdict])


@app.command("audit")
def audit_command(log: LogFile, pin: Pin = None, as_json: Json = False) -> None:
    """Say whether a log is whole and unaltered, and whether the run obeyed its limits."""
    records = run_audit.audit(log, pin)
    if as_json:
        say_json(evidence.document(records))
    else:
        say(lambda: report.print_audit(Console(), records))
    raise typer.Exit(EXIT_CODES[evidence.worst(record.verdict for record in records)])


def main() -> None:
    """Run the command line."""
    app(prog_name="failstop")


def _target(name: str) -> AnyTarget:
    _look_beside_the_user()
    try:
        return load(name)
    except UnknownTarget:
        must_be_known("TARGET", name, TARGETS)
        raise
    except ModuleNotFoundError as error:
        refuse("TARGET", f"{name!r} cannot be loaded: {error}")
    except ConfigurationError as error:
        refuse("TARGET", f"{name!r} is no target: {error}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module does when it is imported
        refuse("TARGET", f"{name!r} cannot be loaded: {_told(error)}")


def _known_planners(module: str | None) -> Mapping[str, Planner]:
    known = catalogue.bundled()
    if module is None:
        return known
    _look_beside_the_user()
    try:
        theirs = catalogue.load(module)
    except (ModuleNotFoundError, ConfigurationError) as error:
        refuse("--planners", f"{module!r} cannot be imported: {error}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module does when it is imported
        refuse("--planners", f"{module!r} cannot be imported: {_told(error)}")
    if not theirs:
        refuse("--planners", f"{module!r} has no function under the decorator failstop.planners.catalogue.planner")
    return {**known, **theirs}


def _told(error: BaseException) -> str:
    """Tell where a module broke; a SyntaxError says so itself, and was raised in no line of the module's."""
    return f"SyntaxError: {error}" if isinstance(error, SyntaxError) else last_line(error)


def _played(planner: Planner, runtime: AnyTarget, variation: Variation, logs: Path) -> evidence.Record:
    """Check one planner; its log is written apart and then put in place, as another check may want the same name."""
    with tempfile.TemporaryDirectory(prefix=".", dir=logs, ignore_cleanup_errors=True) as apart:
        log = Path(apart) / f"{planner.name}.jsonl"
        record = check(planner, runtime, variation, log)
        if log.exists():
            log.replace(logs / log.name)
    return record


def _look_beside_the_user() -> None:
    """Find their modules in the folder they are in, even when failstop was started by its installed script."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def _chosen(known: Mapping[str, Planner], names: Sequence[str]) -> list[Planner]:
    for name in names:
        must_be_known("--planner", name, known)
        if names.count(name) > 1:
            refuse("--planner", f"{name!r} is given {names.count(name)} times; once is enough")
    return [known[name] for name in names] or list(known.values())


def _described(planner: Planner) -> dict[str, object]:
    return {
        "name": planner.name,
        "tries": planner.tries,
        "limits": {name: limit for name, limit in planner.limits.to_mapping().items() if limit is not None},
        "must_end_in": planner.ends_in,
        "guarantee": planner.guarantee,
        "promises": list(planner.promises),
        "module": planner.module,
    }


def _file_name(target: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in target)


if __name__ == "__main__":
    main()
