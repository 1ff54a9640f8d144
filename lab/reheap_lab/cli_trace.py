"""`reheap trace`: looks into a trace, cuts, merges or exports it. The work is done by the native reheap-trace."""

import json
import pathlib
import subprocess

import click

from reheap_lab import export, native, trace
from reheap_lab.cli import console
from reheap_lab.sites.kinds import KINDS

FILE = click.Path(path_type=pathlib.Path, dir_okay=False)
FOLDER = click.Path(path_type=pathlib.Path, file_okay=False, exists=True)


@click.group(help=__doc__.split(".")[0] + ".")
def command() -> None:
    pass


@command.command("info")
@click.argument("traces", nargs=-1, required=True, type=trace.EXISTING)
@click.option("--json", "as_json", is_flag=True, help="Print all that is known, as JSON")
@click.option("--html", type=FILE, metavar="FILE", help="Write a page with plots of sizes, lifetimes and live memory")
@click.pass_context
def info_command(context: click.Context, traces: tuple[pathlib.Path, ...], as_json: bool,
                 html: pathlib.Path | None) -> None:
    """Say what was allocated: sizes, lifetimes, who frees what, the most that lived.

    Several files are read as one, in the order of time. The exit status is 3 when one is damaged and the rest was used.
    """
    pages = (html,) if html else ()
    status, found = trace.read_info(list(traces))
    lost = export.write_each(found, pages, {"": _write_page})
    if as_json:
        click.echo(json.dumps(found))
    else:
        trace.show(found, console())
    export.tell(pages, lost)
    context.exit(status)


def _write_page(found: dict, path: pathlib.Path) -> None:
    from reheap_lab.report import trace_plots  # matplotlib takes a second to load: only who wants it pays
    trace_plots.write_html(found, path)


@command.command("sites")
@click.argument("traces", nargs=-1, required=True, type=trace.EXISTING)
@click.option("--by", type=click.Choice(list(KINDS)), help="Show the sites that lead in this alone, not in each")
@click.option("--top", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="How many sites to show")
@click.option("--wrapper", "wrappers", multiple=True, metavar="NAME",
              help="A function of the program that only passes calls on to malloc: its callers are the sites. May hold "
                   "* and be repeated")
@click.option("--sysroot", type=FOLDER, metavar="DIR", help="Look for the program's files below DIR")
@click.option("--export", "exports", type=FILE, multiple=True, metavar="FILE",
              help="Also write FILE: .html, .pb.gz (pprof), .folded (flame graphs) or .json; may be repeated")
@click.pass_context
def sites_command(context: click.Context, traces: tuple[pathlib.Path, ...], by: str | None, top: int,
                  wrappers: tuple[str, ...], sysroot: pathlib.Path | None, exports: tuple[pathlib.Path, ...]) -> None:
    """Say who allocates: functions and lines, from a trace that was recorded with --stacks.

    Several files are read as one, in the order of time. The exit status is 3 when one is damaged and the rest was used.
    """
    from reheap_lab.sites import profile, show
    from reheap_lab.sites.export import writers
    for path in exports:
        export.check_path(path, writers(by))
    status, printed = trace.run(["sites", *trace.names(list(traces))])
    found = profile.load(json.loads(printed), list(traces), wrappers, sysroot)
    lost = export.write_each(found, exports, writers(by))
    show.show(found, console(), by, top)
    export.tell(exports, lost)
    context.exit(status)


def _native_command(name: str, text: str) -> None:
    @command.command(name, help=text, context_settings={"ignore_unknown_options": True}, add_help_option=True)
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def hand_on(context: click.Context, words: tuple[str, ...]) -> None:
        program = str(native.program("reheap-trace"))
        status = subprocess.run([program, name, *words]).returncode
        context.exit(status if status >= 0 else 128 - status)  # as a shell tells of a signal: `| head` sends one


_native_command("cut", "Write a part: FILE -o OUT [--from-time S] [--to-time S] [--from-event N] [--to-event N]. "
                "What is alive where it begins is allocated first.")
_native_command("merge", "Write the traces of several processes as one: FILE FILE... -o OUT")
_native_command("export", "Print every event in the order of time: FILE... [--format csv|jsonl] [-o OUT]")
_native_command("compile", "Write the form that reheap-replay runs: FILE... -o OUT")
