"""Very many right and wrong answers in sections of items, which other processes can go over as well as this one.

What is summed over items is summed section by section, in their order. Sections depend on the answers alone, so that
the sums do not depend on where they are taken.
"""

import ctypes
import sys
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from itembank.calibration.variational.blocks import Part
from itembank.calibration.variational.coded_blocks import CodedBlocks, Cut, LaidOutCodes, blocks_as_cut, cut
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.numerics.parallel import runs_here
from itembank.responses.item_codes import ItemCodes
from itembank.responses.mapped_codes import MappedCodes

SECTION_ANSWERS = 5_000_000
"""Answers of a section: a worker takes a tenth of a second, beside which the hundredth that a task costs is little."""
MOST_SECTIONS = 128
"""Of more answers sections are larger: each sends back a sum for every ability."""
MOST_KEPT_BYTES = 2**28
"""Of layouts that a worker keeps from pass to pass; what is beyond it lays out anew."""

REUSED_BYTES = 2**24
"""Freed memory that a worker keeps. The C library would give it back, and the passes ask for it anew with every block
of items: two thirds of a worker's time by the settings that Dask gives its workers, a fifth by those of the system."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names that glibc has for this (malloc.h)."""

_kept: "OrderedDict[tuple[str, int], CodedBlocks]" = OrderedDict()


@dataclass(frozen=True, slots=True)
class MappedSection:
    """A section whose answers a worker reads from their file.

    Attributes
    ----------
    fit : str
        Which fit it belongs to.
    number : int
        Of the section.
    codes : MappedCodes
    lower_asymptote : (n_items,)
    dtype : dtype
    ends : (n_blocks,)
        Where each block of items ends.
    is_complete : bool
    """

    fit: str
    number: int
    codes: MappedCodes
    lower_asymptote: FloatArray
    dtype: np.dtype[np.floating]
    ends: IntArray
    is_complete: bool

    def blocks(self) -> CodedBlocks:
        """Lay the answers out, or take the layout that this process has kept."""
        name = (self.fit, self.number)
        if name in _kept:
            _kept.move_to_end(name)
            return _kept[name]
        for old in [old for old in _kept if old[0] != self.fit]:
            del _kept[old]
        _reuse_memory()
        found = blocks_as_cut(
            self.codes.open(), self.lower_asymptote, self.dtype, self.ends, is_complete=self.is_complete
        )
        _kept[name] = found
        while sum(one.n_bytes for one in _kept.values()) > MOST_KEPT_BYTES:
            _kept.popitem(last=False)
        return found


Section: TypeAlias = CodedBlocks | MappedSection


@dataclass(frozen=True, slots=True)
class CodedSections(LaidOutCodes):
    """Answers laid out for the passes, section after section.

    Attributes
    ----------
    codes, lower_asymptote, dtype, is_complete
        As those of `LaidOutCodes`.
    places : tuple of (n_section,)
        Which items each section has; every item is in one.
    sections : tuple of Section
    is_spread : bool
        Whether other processes go over the sections.
    """

    places: tuple[IntArray, ...]
    sections: tuple[Section, ...]
    is_spread: bool

    def parts(self) -> Iterator[Part]:
        """Give the answers block by block, in this process."""
        for place, section in zip(self.places, self.sections, strict=True):
            for part in laid_out(section).parts():
                yield part._replace(items=place[part.items])


def coded_sections(
    codes: ItemCodes, lower_asymptote: FloatArray, dtype: np.dtype[np.floating], *, is_complete: bool
) -> CodedSections:
    """Lay codes out for the passes; other processes share these where codes are mapped and joblib is set up so."""
    sections = list(_sections(list(cut(codes, is_complete=is_complete))))
    is_spread = MappedCodes.of(codes) is not None and not runs_here(len(sections))
    made: list[Section] = []
    fit, places, first = uuid.uuid4().hex, [], 0
    for number, cuts in enumerate(sections):
        sizes = [_size(one.items) for one in cuts]
        last, ends = first + sum(sizes), np.cumsum(sizes)
        place = np.arange(first, last) if is_complete else np.concatenate([one.items for one in cuts])
        own = codes.span(first, last) if is_complete else codes.take(place)
        lower = lower_asymptote[place]
        where = MappedCodes.of(own) if is_spread else None
        if where is None:
            made.append(blocks_as_cut(own, lower, dtype, ends, is_complete=is_complete))
        else:
            made.append(MappedSection(fit, number, where, lower, dtype, ends, is_complete))
        places.append(place)
        first = last
    return CodedSections(codes, lower_asymptote, dtype, is_complete, tuple(places), tuple(made), is_spread)


def laid_out(section: Section) -> CodedBlocks:
    """Return the blocks of a section."""
    return section if isinstance(section, CodedBlocks) else section.blocks()


def _reuse_memory() -> None:
    """Let this process keep memory that it frees, where its C library is glibc."""
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, REUSED_BYTES)
        set_option(M_TRIM_THRESHOLD, 2 * REUSED_BYTES)


def _sections(blocks: list[Cut]) -> Iterator[list[Cut]]:
    """Put blocks that follow each other together until they have answers enough."""
    enough = max(SECTION_ANSWERS, sum(one.n_answers for one in blocks) // MOST_SECTIONS)
    together: list[Cut] = []
    n_answers = 0
    for one in blocks:
        together.append(one)
        n_answers += one.n_answers
        if n_answers >= enough:
            yield together
            together, n_answers = [], 0
    if together:
        yield together


def _size(items: slice | IntArray) -> int:
    return items.stop - items.start if isinstance(items, slice) else int(items.size)
