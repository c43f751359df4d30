"""How many rows a tile and a share of a loop have: sizes alone decide it. As functions of Python and, for kernels, of LLVM's language."""

from __future__ import annotations

SHARE = 1 << 14  # elements, about, that a share of a loop has at least
TILED = (
    1 << 11
)  # elements of a tile that runs all iterations of a loop: its arrays stay in the cache that is next to the first
STRIDED = 1 << 7  # where each of them is in a cache line of its own, which later iterations read on
MOST_SHARES = 256  # of a loop
ADDED_ROWS = 128  # rows that a share has at least which adds up columns: these are added once more
MOST_PARTS = 1 << 22  # elements, about, of memory for that
ROW_TILE = 256  # the most rows in a tile with further axes
ROW_STEP = 16  # rows come in multiples of this where there are that many: whole vectors
TILE_ROOM = (
    1024  # elements of a tile's rows, as far as one row does not hold more: the first cache holds several such tiles
)


def tile_rows(width: int) -> int:
    """Return the number of rows in a tile, for ``width`` elements in a row."""
    if width * ROW_TILE <= TILE_ROOM:
        return ROW_TILE
    if width * ROW_STEP <= TILE_ROOM:
        return TILE_ROOM // (width * ROW_STEP) * ROW_STEP
    return TILE_ROOM // width if width < TILE_ROOM else 1


def share_rows(rows: int, step: int, width: int, kept: int) -> int:
    """Return how many rows a share of a loop has: whole tiles, not too few, in not too many shares.

    Parameters
    ----------
    rows, step, width
        How many rows there are, how many a tile has, and how many elements a row has; 0 for one.
    kept
        How many elements a share adds up; 0 for none.
    """
    tiles = max((rows + step - 1) // step // MOST_SHARES + 1, SHARE // (step * (width + 1)))
    if kept:
        tiles = max(tiles, ADDED_ROWS // step + 1, rows * kept // MOST_PARTS // step + 1)
    return step * tiles


def part_room(rows: int, width: int, kept: int, count: int) -> int:
    """Return how many elements of memory the shares but the first need, where each adds up ``count`` of its ``kept`` elements."""
    share = share_rows(rows, tile_rows(width), width, kept)
    return max(-(-rows // share) - 1, 0) * count


FUNCTIONS = {
    "tile_rows": f"""define internal i64 @tile_rows(i64 %width) noinline nounwind optsize readnone {{
  %most = mul i64 %width, {ROW_TILE}
  %narrow = icmp sle i64 %most, {TILE_ROOM}
  br i1 %narrow, label %first, label %more
first:
  ret i64 {ROW_TILE}
more:
  %several = mul i64 %width, {ROW_STEP}
  %whole = icmp sle i64 %several, {TILE_ROOM}
  br i1 %whole, label %second, label %rest
second:
  %steps = udiv i64 {TILE_ROOM}, %several
  %rows = mul i64 %steps, {ROW_STEP}
  ret i64 %rows
rest:
  %short = icmp slt i64 %width, {TILE_ROOM}
  br i1 %short, label %third, label %last
third:
  %few = udiv i64 {TILE_ROOM}, %width
  ret i64 %few
last:
  ret i64 1
}}""",
    "share_rows": f"""define internal i64 @share_rows(i64 %rows, i64 %step, i64 %width, i64 %kept) noinline nounwind optsize readnone {{
entry:
  %a = add i64 %rows, %step
  %b = sub i64 %a, 1
  %c = sdiv i64 %b, %step
  %d = sdiv i64 %c, {MOST_SHARES}
  %tiles = add i64 %d, 1
  %e = add i64 %width, 1
  %f = mul i64 %step, %e
  %least = sdiv i64 {SHARE}, %f
  %g = icmp sgt i64 %tiles, %least
  %most = select i1 %g, i64 %tiles, i64 %least
  %adds = icmp ne i64 %kept, 0
  br i1 %adds, label %more, label %end
more:
  %h = sdiv i64 {ADDED_ROWS}, %step
  %added = add i64 %h, 1
  %i = icmp sgt i64 %most, %added
  %j = select i1 %i, i64 %most, i64 %added
  %k = mul i64 %rows, %kept
  %l = sdiv i64 %k, {MOST_PARTS}
  %m = sdiv i64 %l, %step
  %parts = add i64 %m, 1
  %n = icmp sgt i64 %j, %parts
  %o = select i1 %n, i64 %j, i64 %parts
  br label %end
end:
  %p = phi i64 [ %most, %entry ], [ %o, %more ]
  %q = mul i64 %step, %p
  ret i64 %q
}}""",
}
"""The same functions for kernels; sizes are no negative numbers."""
