"""Stage times as a picture: a row for the whole job and one a partition, a bar a stage.

save() draws with matplotlib where it is installed, else with svg(), which needs nothing.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple, Union
from xml.sax.saxutils import escape

from ._types import Path, Proof, Stage

__all__ = ["figure", "rows", "save", "svg"]

if TYPE_CHECKING:
    Stages = Union[Proof, Sequence[Stage]]
else:
    Stages = Any

_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac")


def rows(stages: Stages) -> List[Tuple[str, List[Stage]]]:
    """The stages by row, the whole job first, each row in order of time."""
    listed = stages.stages if isinstance(stages, Proof) else stages
    found: Dict[int, List[Stage]] = {}
    for stage in listed:
        found.setdefault(stage.partition, []).append(stage)
    return [
        ("job" if partition < 0 else f"partition {partition}", sorted(row, key=lambda s: s.start_seconds))
        for partition, row in sorted(found.items())
    ]


def _colours(table: List[Tuple[str, List[Stage]]]) -> Dict[str, str]:
    """A colour a stage name, in order of first appearance, the same in every picture of the same stages."""
    out: Dict[str, str] = {}
    for _, row in table:
        for stage in row:
            out.setdefault(stage.name, _COLOURS[len(out) % len(_COLOURS)])
    return out


def _tick(span: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that cuts span into at least five."""
    step = 1e-9
    for factor in (2.0, 2.5, 2.0) * 20:
        if step * factor > span / 5:
            break
        step *= factor
    return step


def svg(stages: Stages, *, title: str = "", width: int = 960) -> str:
    """The picture as an SVG document. A bar's name and seconds show when the pointer is on it."""
    table = rows(stages)
    colours = _colours(table)
    span = max((s.start_seconds + s.seconds for _, row in table for s in row), default=0.0) or 1e-9
    left, top, bar, gap = 110, 36 if title else 12, 26, 8
    scale = (width - left - 20) / span
    bottom = top + len(table) * (bar + gap)
    per_line = max(1, (width - left) // 120)
    height = bottom + 34 + (len(colours) + per_line - 1) // per_line * 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    if title:
        out.append(f'<text x="{left}" y="20" font-size="14">{escape(title)}</text>')
    step = _tick(span)
    for i in range(int(span / step) + 1):
        x = left + i * step * scale
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{i * step:g} s</text>')
    for k, (label, row) in enumerate(table):
        y = top + k * (bar + gap)
        out.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end">{escape(label)}</text>')
        for stage in row:
            out.append(
                f'<rect x="{left + stage.start_seconds * scale:.2f}" y="{y}" width="{max(stage.seconds * scale, 0.5):.2f}" height="{bar}" '
                f'fill="{colours[stage.name]}"><title>{escape(stage.name)}: {stage.seconds:.6f} s</title></rect>'
            )
    for i, (name, colour) in enumerate(colours.items()):
        x, y = left + i % per_line * 120, bottom + 30 + i // per_line * 20
        out.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{x + 17}" y="{y + 11}">{escape(name)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def figure(stages: Stages, *, title: str = "") -> Any:
    """The picture as a matplotlib figure. Needs matplotlib."""
    matplotlib = importlib.import_module("matplotlib.figure")  # by name, so that type checkers do not ask for it
    table = rows(stages)
    colours = _colours(table)
    drawn = matplotlib.Figure(figsize=(10, 1.6 + 0.4 * len(table)), layout="constrained")
    axes = drawn.add_subplot()
    named = set()
    for k, (_, row) in enumerate(table):
        for stage in row:
            label = "_" + stage.name if stage.name in named else stage.name
            named.add(stage.name)
            axes.barh(k, stage.seconds, left=stage.start_seconds, color=colours[stage.name], label=label)
    axes.set_yticks(range(len(table)), [label for label, _ in table])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    if title:
        axes.set_title(title)
    if named:
        axes.legend(ncols=5, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.25))
    return drawn


def save(stages: Stages, path: Path, *, title: str = "") -> str:
    """Writes the picture, and returns what drew it: "matplotlib" or "svg". Without matplotlib the path must end in
    .svg: ValueError."""
    name = os.fsdecode(path)
    try:
        drawn = figure(stages, title=title)
    except ImportError:
        if not name.lower().endswith(".svg"):
            raise ValueError(f"{name}: want a name that ends in .svg, since matplotlib is not installed") from None
        with open(path, "w", encoding="utf-8") as out:
            out.write(svg(stages, title=title))
        return "svg"
    drawn.savefig(name)
    return "matplotlib"
