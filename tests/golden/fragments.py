"""Where the lanes of a warp hold the numbers of tensor-core operands, for `llm: emulated fragments`.

Written from the tables of the PTX ISA ("Matrix Fragments for mma.m16n8k16 with floating point type", "ldmatrix",
"Register Fragments for wgmma.mma_async.m64nNk16", "Matrix Descriptor Format") and not from the program. The fragments are
stated a second time as the strided layouts of CUTLASS (commit 7107b055: include/cute/atom/mma_traits_sm80.hpp:78-92,
mma_traits_sm90_gmma.hpp:433-452), evaluated here; both must agree. Writes fragments.txt:

    a|b|c LANE ROW,COLUMN ...           the elements of a lane in order, for A [16, 16], B [16, 8], C [16, 8]
    ldmatrix|transposed LANE ROW,COLUMN ...   the two elements that it gets of each 8 x 8 matrix
    swizzled ROW OFFSET ...             of the eight vectors of a row of 64 bfloat16, in bytes from the matrix
    descriptor ADDRESS PANEL_BYTES NUMBER     of a matrix in shared memory, permuted over 128 bytes

    python tests/golden/fragments.py
"""
import pathlib


def layout(shape, stride, i):
    """The value of a CuTe layout (nested shapes, first mode fastest) at the i-th place."""
    if isinstance(shape, int):
        return i % shape * stride
    total = 0
    for s, d in zip(shape, stride):
        size = count(s)
        total += layout(s, d, i % size)
        i //= size
    return total


def count(shape):
    if isinstance(shape, int):
        return shape
    n = 1
    for s in shape:
        n *= count(s)
    return n


# --- by the PTX ISA: row and column of element i of a lane ---

def ptx_a(lane, i):
    group, thread = lane >> 2, lane % 4
    row = group if i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (0 if i < 4 else 8)


def ptx_b(lane, i):
    group, thread = lane >> 2, lane % 4
    return thread * 2 + (i & 1) + (0 if i < 2 else 8), group


def ptx_c(lane, i):
    group, thread = lane >> 2, lane % 4
    return group + (0 if i < 2 else 8), thread * 2 + (i & 1)


def ptx_wgmma_c(thread, i):
    return (thread // 32) * 16 + thread % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + thread % 4 * 2 + (i & 1)


def ptx_wgmma_a(thread, i):
    return (thread // 32) * 16 + thread % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + thread % 4 * 2 + (i & 1)


# --- by CUTLASS: numbers along the first extent, then the second; B is stored as [N, K] ---

CUTE_A = (((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))
CUTE_B = (((4, 8), (2, 2)), ((16, 1), (8, 64)))
CUTE_C = (((4, 8), (2, 2)), ((32, 1), (16, 8)))


def cute(which, lanes, rows, lane, i):
    at = layout(which[0], which[1], lane + lanes * i)
    return at % rows, at // rows


def cute_wgmma(columns):
    return ((4, 8, 4), (2, 2, columns // 8)), ((128, 1, 16), (64, 8, 512))


def swizzled(row, vector):
    """Swizzle<3, 4, 3> of bytes: bits 4 to 6 are permuted by bits 7 to 9."""
    at = row * 128 + vector * 16
    return at ^ (at >> 3 & 0x70)


def descriptor(address, panel_bytes):
    """The bit fields of the matrix descriptor, in units of 16 bytes."""
    fields = [(0, 14, address >> 4), (16, 14, panel_bytes >> 4), (32, 14, 1024 >> 4), (49, 3, 0), (62, 2, 1)]
    number = 0
    for first, bits, value in fields:
        number |= (value & ((1 << bits) - 1)) << first
    return number


lines = []
for name, ptx, which, rows, n in (("a", ptx_a, CUTE_A, 16, 8), ("b", ptx_b, CUTE_B, 8, 4), ("c", ptx_c, CUTE_C, 16, 4)):
    seen = set()
    for lane in range(32):
        places = [ptx(lane, i) for i in range(n)]
        for i, (row, column) in enumerate(places):
            other = cute(which, 32, rows, lane, i)
            assert other == ((column, row) if name == "b" else (row, column)), (name, lane, i, other)
        seen.update(places)
        lines.append(f"{name} {lane} " + " ".join(f"{r},{c}" for r, c in places))
    assert len(seen) == 32 * n  # each number is held once

# A warpgroup's C, and its A in registers, are four of the warp's side by side (mma.cuh, wgmma.cuh).
for columns in (8, 64, 128):
    for thread in range(128):
        for i in range(columns // 2):
            place = ptx_wgmma_c(thread, i)
            assert place == cute(cute_wgmma(columns), 128, 64, thread, i)
            row, column = ptx_c(thread % 32, i % 4)
            assert place == (thread // 32 * 16 + row, i // 4 * 8 + column)
for thread in range(128):
    for i in range(8):
        place = ptx_wgmma_a(thread, i)
        assert place == cute(cute_wgmma(16), 128, 64, thread, i)
        row, column = ptx_a(thread % 32, i)
        assert place == (thread // 32 * 16 + row, column)

for lane in range(32):  # "row lane / 4, elements 2 (lane % 4) and the next"
    lines.append(f"ldmatrix {lane} {lane // 4},{lane % 4 * 2} {lane // 4},{lane % 4 * 2 + 1}")
    lines.append(f"transposed {lane} {lane % 4 * 2},{lane // 4} {lane % 4 * 2 + 1},{lane // 4}")
for row in range(64):
    lines.append(f"swizzled {row} " + " ".join(str(swizzled(row, v)) for v in range(8)))
for address, panel in ((0, 16), (1024, 16), (1024 + 32, 8192), (0x31000, 16384), (0x38000 + 96, 32768)):
    lines.append(f"descriptor {address} {panel} {descriptor(address, panel)}")
pathlib.Path(__file__).with_suffix(".txt").write_text("\n".join(lines) + "\n")
