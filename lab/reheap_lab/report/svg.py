"""A matplotlib figure as SVG inside a page: text stays text, and every colour is one of the page's variables."""

import io
import itertools
import re
import warnings
from xml.etree import ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from .palette import ROLE_OF, role

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "reheap",
    "text.parse_math": False,  # a name may hold dollar signs
    "font.family": ["DejaVu Sans"],  # wider than what browsers choose: what fits here fits there
    "font.size": 10.5,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": role("line"),
    "axes.labelcolor": role("muted"),
    "axes.facecolor": "none",
    "axes.titlesize": 10.5,
    "axes.titlecolor": role("ink"),
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "grid.color": role("line"),
    "grid.linewidth": 0.7,
    "text.color": role("ink"),
    "xtick.color": role("line"),
    "ytick.color": role("line"),
    "xtick.labelcolor": role("muted"),
    "ytick.labelcolor": role("muted"),
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "path.simplify": True,
    "path.simplify_threshold": 0.3,
}

_numbers = itertools.count()


def styled():
    """The context in which figures are made and drawn."""
    return matplotlib.rc_context(_STYLE)


def figure(width: float, height: float) -> Figure:
    """An empty figure of so many units; a unit is about a pixel."""
    made = Figure(figsize=(width / 72, height / 72), dpi=72)
    FigureCanvasSVG(made)
    return made


def render(made: Figure, alt: str) -> str:
    """The figure as an <svg> element; `alt` is what it says to those who cannot see it."""
    text = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has other fonts
        made.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(text.getvalue())
    _simplify(root)
    _own_ids(root, f"g{next(_numbers)}-")
    root.attrib = {"viewBox": root.get("viewBox"), "role": "img", "aria-label": alt}
    return ElementTree.tostring(root, encoding="unicode")


def label(text: str, most: int = 22) -> str:
    """A name as a plot can show it: on one line, of bounded length, without what XML cannot hold."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return shown if len(shown) <= most else shown[:most - 1] + "…"


def _simplify(root: ElementTree.Element) -> None:
    """Leaves out what the page says once for all, and turns stand-ins into variables."""
    for parent in list(root.iter()):
        for child in list(parent):
            if _name(child) in ("metadata", "style"):
                parent.remove(child)
    for node in root.iter():
        node.tag = _name(node)
        node.attrib = {key.rpartition("}")[2]: value for key, value in node.attrib.items()}
        if node.tag != "text":
            node.text = None
        node.tail = None
        for key in ("d", "x", "y", "width", "height", "transform"):
            if key in node.attrib:
                node.set(key, _short(node.get(key)))
        if node.get("transform", "").startswith("rotate(-0 "):
            del node.attrib["transform"]
        if "style" in node.attrib:
            node.set("style", _themed(node.get("style")))
    for node in root.iter("g"):
        _share_style(node)


def _name(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]


def _short(value: str) -> str:
    value = re.sub(r"(\.\d\d)\d+", r"\1", value)
    return re.sub(r"\s*\n\s*", "", value).strip()


def _themed(style: str) -> str:
    style = re.sub(r"font-family: [^;]*;? ?", "", style)
    style = re.sub(r"#0[a-d]00[0-9a-f]{2}", lambda m: f"var(--{ROLE_OF[m.group()]})", style)
    return style.replace(": ", ":").replace("; ", ";").rstrip(";")


def _share_style(group: ElementTree.Element) -> None:
    """A hundred equal markers say their style once, in their group."""
    uses = list(group)
    styles = {node.get("style") for node in uses}
    if len(uses) > 1 and all(node.tag == "use" for node in uses) and len(styles) == 1 and None not in styles:
        group.set("style", styles.pop())
        for node in uses:
            del node.attrib["style"]


def _own_ids(root: ElementTree.Element, prefix: str) -> None:
    """Keeps the ids that something refers to, as this figure's own; a group named by a plot becomes a class."""
    text = ElementTree.tostring(root, encoding="unicode")
    wanted = set(re.findall(r"""(?:url\(#|href="#)([\w-]+)""", text))
    for node in root.iter():
        name = node.attrib.pop("id", None)
        if name in wanted:
            node.set("id", prefix + name)
        elif name and name.startswith("series-"):
            node.set("class", f"series {name}")
        if "href" in node.attrib:
            node.set("href", "#" + prefix + node.get("href")[1:])
        if "clip-path" in node.attrib:
            node.set("clip-path", node.get("clip-path").replace("url(#", f"url(#{prefix}"))
