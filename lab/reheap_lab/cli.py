"""`reheap-lab`, and what of `reheap` is the lab's: reads words, calls the parts, says what went wrong."""

import errno
import importlib
import os
import pathlib
import sys

import click
from rich.console import Console

import reheap_lab
from reheap_lab import interrupts
from reheap_lab.errors import LabError

# Those of our own, whose modules load only when they are asked for; each calls its command `command`.
PARTS = {
    "compare": ("reheap_lab.cli_compare", "Measure a command under each allocator, and judge"),
    "suite": ("reheap_lab.suite.command", "Measure many commands in one go: those of a file, or real programs"),
    "report": ("reheap_lab.cli_report", "Show or convert what was kept as JSON"),
    "gate": ("reheap_lab.gate", "Fail when an allocator became worse since a comparison that was kept"),
    "allocators": ("reheap_lab.cli_allocators", "List the allocators found here"),
    "record": ("reheap_lab.record", "Write a trace of every allocation a command makes"),
    "trace": ("reheap_lab.cli_trace", "Look into a trace, see who allocates, cut, merge or export it"),
    "profile": ("reheap_lab.cli_profile", "Sample who allocates what is live, in a command or a process"),
    "replay": ("reheap_lab.replay", "Play a trace back under each allocator, and judge"),
    "calibrate": ("reheap_lab.calibrate", "Test the lab itself on this machine"),
}


class Lab(click.Group):
    """Loads a part when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*PARTS, *super().list_commands(context)]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in PARTS:
            return super().get_command(context, name)
        return importlib.import_module(PARTS[name][0]).command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        own = {name: command.get_short_help_str() for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(list(({name: text for name, (_, text) in PARTS.items()} | own).items()))


@click.group(cls=Lab, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(reheap_lab.__version__, prog_name="reheap-lab")
def main_group() -> None:
    """Which allocator, for my program, how much, how sure.

    Begin with: reheap compare -- CMD ARGS... What runs programs on reheap is the command `reheap` itself.
    """


@main_group.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for a shell."""
    from click.shell_completion import get_completion_class
    variable = f"_{_name().replace('-', '_').upper()}_COMPLETE"  # what click looks for
    click.echo(get_completion_class(shell)(main_group, {}, _name(), variable).source())


def main(words: list[str] | None = None) -> None:
    if sys.stdout is None:  # whoever started us closed it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    sys.stdout.reconfigure(errors="backslashreplace")  # a locale need not have our signs, nor a name be UTF-8
    interrupts.heed()  # as by Ctrl-C: what is known is told, and folders for the while are removed
    try:
        # What a command left by context.exit is what comes back.
        status = main_group.main(words, prog_name=_name(), standalone_mode=False) or 0
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("reheap: stopped", err=True)
        status = 130
    except LabError as error:
        click.echo(f"reheap: {error}", err=True)
        status = error.status
    except OSError as error:
        if error.errno != errno.EPIPE:  # whoever reads may leave
            where = "the current folder" if error.errno == errno.ENOENT else "standard output"  # which was removed
            click.echo(f"reheap: {error.filename or where}: {error.strerror or error}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be written
        status = 1
    sys.exit(status)


def _name() -> str:
    return pathlib.Path(sys.argv[0]).name or "reheap"


def console() -> Console:
    """Results on standard output; a wide line where there is no terminal to say how wide. What is called [red] or :x:
    is shown so."""
    terminal = Console(markup=False, emoji=False)
    return terminal if terminal.is_terminal else Console(width=200, markup=False, emoji=False)


if __name__ == "__main__":
    main()
