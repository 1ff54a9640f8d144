"""The report: one HTML file that needs nothing else, from the record of a comparison or of a trace."""

from .page import write_html

__all__ = ["write_html"]
