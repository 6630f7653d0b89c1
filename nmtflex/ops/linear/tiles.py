"""Products of a tile, some rows by some vectors of columns, whose sums stay in registers.

numba's loops can name neither the processor's instructions for 8-bit integers nor what stays in a
register, so a tile is written in LLVM's language. A sum takes its terms one after another,
whatever rows and columns are beside it.

Weights lie as a tile reads them: ``COLUMNS`` columns at a time, and of these ``group`` numbers of
each column, one column after another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm  # type: ignore[import-untyped]
from llvmlite import ir
from numba import types
from numba.core import cgutils as typed_cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

ROWS = (6, 4, 2, 1)  # of tiles; the most whose sums fit in the registers, and of what is left

cgutils: Any = typed_cgutils

BYTE, SHORT, WHOLE, ADDRESS = (ir.IntType(bits) for bits in (8, 16, 32, 64))
SINGLE = ir.FloatType()


class Form(NamedTuple):
    """How 8-bit numbers are multiplied."""

    group: int  # consecutive numbers of a row that one instruction multiplies and adds
    offset: int  # what is added to a weight, and taken from the sums
    add: Callable[[Any, Any, Any, Any], Any]  # of builder, sums, weights and a row's numbers


def _features() -> set[str]:
    """Return what the processor can do that numba compiles for, in LLVM's names."""
    names = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    return {name[1:] for name in names if name.startswith("+")}


FEATURES = _features()
LANES = 16 if "avx512f" in FEATURES else 8 if "avx2" in FEATURES else 4  # of a vector
VECTORS = 4 if "avx512f" in FEATURES or "neon" in FEATURES else 2  # 32 registers, or 16
COLUMNS = LANES * VECTORS

NUMBERS = ir.VectorType(SINGLE, LANES)
SUMS = ir.VectorType(WHOLE, LANES)


def _dot_four(builder: Any, sums: Any, weights: Any, row: Any) -> Any:
    """Add four products at once, of positive weights and signed numbers of a row."""
    # By its name, for the function that LLVM has for it changed its arguments.
    form = "" if "avx512vnni" in FEATURES else "{vex} "
    kind = ir.FunctionType(SUMS, [SUMS, SUMS, SUMS])
    code = ir.InlineAsm(kind, f"{form}vpdpbusd $3, $2, $0", "=v,0,v,v", side_effect=False)
    weights = builder.bitcast(weights, SUMS)
    return builder.call(code, [sums, weights, _repeated(builder, row, SUMS)])


def _dot_two(builder: Any, sums: Any, weights: Any, row: Any) -> Any:
    """Add two products at once, of numbers that are widened to 16 bits."""
    pairs = ir.VectorType(SHORT, 2 * LANES)
    kind = ir.FunctionType(SUMS, [pairs, pairs])
    name = "avx2.pmadd.wd" if LANES == 8 else "avx512.pmaddw.d.512"
    add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}")
    wide = builder.bitcast(builder.sext(row, ir.VectorType(SHORT, 2)), WHOLE)
    both = builder.bitcast(_repeated(builder, wide, SUMS), pairs)
    return builder.add(sums, builder.call(add, [builder.sext(weights, pairs), both]))


def _dot_one(builder: Any, sums: Any, weights: Any, row: Any) -> Any:
    """Add one product."""
    wide = builder.sext(builder.bitcast(row, BYTE), WHOLE)
    product = builder.mul(builder.sext(weights, SUMS), _repeated(builder, wide, SUMS))
    return builder.add(sums, product)


def _choose() -> Form:
    if ("avx512vnni" in FEATURES and LANES == 16) or ("avxvnni" in FEATURES and LANES == 8):
        llvm.initialize_native_asmparser()
        return Form(4, 128, _dot_four)
    pairs = LANES == 8 or "avx512bw" in FEATURES
    return Form(2, 0, _dot_two) if pairs else Form(1, 0, _dot_one)


INT8 = _choose()


def single_tile(count: int) -> Any:
    """Return a function that multiplies a tile of ``count`` rows in float32.

    It takes two tuples: the addresses of the rows and of the weights, with what lies between two
    rows in bytes and C; and the address of the products, with what lies between two of their rows.
    """

    def multiply(typing_context, rows, products):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
            rows, (out, stride) = (cgutils.unpack_tuple(builder, given) for given in arguments)
            zero = ir.Constant(NUMBERS, [0.0] * LANES)

            def add(sums: Any, weights: Any, row: Any) -> Any:
                fused = ("contract",)  # rounded once, where the processor can
                product = builder.fmul(_repeated(builder, row, NUMBERS), weights, flags=fused)
                return builder.fadd(sums, product, flags=fused)

            sums = _sums(builder, [zero] * count, add, (SINGLE, 1), rows)
            for r, of_row in enumerate(sums):
                _store(builder, _at(builder, out, stride, r), of_row)
            return context.get_dummy_value()

        return types.void(_addresses(4), _addresses(2)), generate

    return intrinsic(multiply)


def int8_tile(count: int) -> Any:
    """Return a function that multiplies a tile in 8 bits, and scales the sums back.

    It takes what ``single_tile``'s does, with the number of groups for C; then the addresses of
    what the sums of each row begin with (int32) and of the rows' scales; and the address of the
    columns' scales.
    """

    def multiply(typing_context, rows, products, own, columns):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
            rows, (out, stride), (first, scales) = (
                cgutils.unpack_tuple(builder, given) for given in arguments[:3]
            )

            def of_row(address: Any, kind: Any, vector: Any, r: int) -> Any:
                place = builder.add(address, ir.Constant(ADDRESS, 4 * r))
                return _repeated(builder, _load(builder, place, kind), vector)

            def add(sums: Any, weights: Any, row: Any) -> Any:
                return INT8.add(builder, sums, weights, row)

            starts = [of_row(first, WHOLE, SUMS, r) for r in range(count)]
            sums = _sums(builder, starts, add, (BYTE, INT8.group), rows)
            by_column = [
                _load(builder, _vector(builder, arguments[3], v), NUMBERS) for v in range(VECTORS)
            ]
            for r, whole in enumerate(sums):
                scale = of_row(scales, SINGLE, NUMBERS, r)
                scaled = [
                    builder.fmul(builder.sitofp(one, NUMBERS), builder.fmul(scale, column))
                    for one, column in zip(whole, by_column, strict=True)
                ]
                _store(builder, _at(builder, out, stride, r), scaled)
            return context.get_dummy_value()

        given = _addresses(4), _addresses(2), _addresses(2), types.intp
        return types.void(*given), generate

    return intrinsic(multiply)


def _addresses(count: int) -> Any:
    """Return the type of a tuple of addresses and sizes."""
    kind: Any = types.UniTuple
    return kind(types.intp, count)


def _sums(
    builder: Any,
    starts: Sequence[Any],
    add: Callable[[Any, Any, Any], Any],
    read: tuple[Any, int],
    rows: Sequence[Any],
) -> list[list[Any]]:
    """Add products step by step to what each row's sums begin with; return VECTORS sums a row.

    ``read`` is the format of the weights, and how many a column has a step; ``rows`` as in
    ``single_tile``.
    """
    (kind, group), (x, stride, weights, steps) = read, rows
    size = ir.Constant(ADDRESS, group * (4 if kind == SINGLE else 1))
    of_row = kind if kind == SINGLE else ir.VectorType(kind, group)
    of_columns = ir.VectorType(kind, LANES * group)
    rooms = [[cgutils.alloca_once(builder, start.type) for _ in range(VECTORS)] for start in starts]
    for start, row in zip(starts, rooms, strict=True):
        for room in row:
            builder.store(start, room)
    with cgutils.for_range(builder, steps, intp=ADDRESS) as loop:
        place = builder.mul(loop.index, size)
        first = builder.add(weights, builder.mul(place, ir.Constant(ADDRESS, COLUMNS)))
        step = builder.mul(size, ir.Constant(ADDRESS, LANES))
        columns = [_load(builder, _at(builder, first, step, v), of_columns) for v in range(VECTORS)]
        for r, row in enumerate(rooms):
            numbers = _load(builder, builder.add(_at(builder, x, stride, r), place), of_row)
            for room, of_column in zip(row, columns, strict=True):
                builder.store(add(builder.load(room), of_column, numbers), room)
    return [[builder.load(room) for room in row] for row in rooms]


def _at(builder: Any, address: Any, stride: Any, index: int) -> Any:
    """Return an address some strides further."""
    return builder.add(address, builder.mul(stride, ir.Constant(ADDRESS, index)))


def _vector(builder: Any, address: Any, index: int) -> Any:
    """Return the address of one of several vectors of 32-bit numbers."""
    return builder.add(address, ir.Constant(ADDRESS, 4 * LANES * index))


def _load(builder: Any, address: Any, kind: Any) -> Any:
    """Read what lies at an address."""
    found = builder.load(builder.inttoptr(address, kind.as_pointer()))
    found.align = 1
    return found


def _store(builder: Any, address: Any, vectors: Sequence[Any]) -> None:
    """Write vectors one after another."""
    for index, vector in enumerate(vectors):
        place = builder.inttoptr(_vector(builder, address, index), vector.type.as_pointer())
        builder.store(vector, place).align = 1


def _repeated(builder: Any, number: Any, vector: Any) -> Any:
    """Return a vector of one number."""
    if number.type != vector.element:
        number = builder.bitcast(number, vector.element)
    empty = ir.Constant(vector, ir.Undefined)
    single = builder.insert_element(empty, number, ir.Constant(WHOLE, 0))
    order = ir.Constant(ir.VectorType(WHOLE, LANES), [0] * LANES)
    return builder.shuffle_vector(single, empty, order)
