"""Compile every Triton kernel for a GPU, which needs none; ``test_cuda`` runs this.

    python compile_kernels.py FORMAT ADDITIVE PUNISHED DAMPED

Prints the name of each kernel and the bytes of its machine code.
"""

from __future__ import annotations

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from nmtflex.ops.attend import triton_backward, triton_loops
from nmtflex.ops.launch import PART, POSITIONS, UNITS
from nmtflex.ops.recurrent import triton_loops as recurrent_loops
from nmtflex.ops.sequence import triton_loops as sequence_loops

KERNELS = {
    "score": triton_loops.score,
    "weigh": triton_loops.weigh,
    "add_parts": triton_loops.add_parts,
    "of_weights": triton_backward.of_weights,
    "of_scores": triton_backward.of_scores,
    "of_query": triton_backward.of_query,
    "of_values": triton_backward.of_values,
    "of_keys": triton_backward.of_keys,
    "walk": sequence_loops.walk,
    "backward_walk": sequence_loops.backward_walk,
    "ssru": recurrent_loops.ssru,
    "backward_ssru": recurrent_loops.backward_ssru,
}
INDICES = {"rows", "start", "stop", "order", "ends", "lengths"}
SIZES = {"length", "size", "parts", "steps"}
NUMBERS = {"penalty_spread", "damping_spread", "spread", "tau"}
MEMORY = {  # in the source's format
    "query", "keys", "values", "context", "grad_context", "total",
    "gates", "candidates", "of_gates", "of_candidates",
}  # fmt: skip


def argument_type(name: str, form: str, constants: dict[str, object]) -> str:
    if name in constants:
        return "constexpr"
    if name in INDICES:
        return "*i64"
    if name in SIZES:
        return "i32"
    if name in NUMBERS:
        return "fp32"
    return f"*{form}" if name in MEMORY else "*fp32"


def main(form: str, *flags: str) -> None:
    additive, punished, damped = (flag == "1" for flag in flags)
    constants = {
        "additive": additive,
        "punished": punished,
        "damped": damped,
        "kept": True,
        "windowed": punished,
        "part_size": PART,
        "positions": POSITIONS,
        "units": UNITS,
    }
    for name, kernel in KERNELS.items():
        own = {key: value for key, value in constants.items() if key in kernel.arg_names}
        source = ASTSource(
            fn=kernel,
            signature={key: argument_type(key, form, own) for key in kernel.arg_names},
            constexprs={(kernel.arg_names.index(key),): value for key, value in own.items()},
        )
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        sys.stdout.write(f"{name} {len(compiled.asm['cubin'])}\n")


main(*sys.argv[1:])
