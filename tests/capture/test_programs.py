"""Small programs, each held against plain NumPy: values, dtypes, forms, stores and errors."""

import pytest

from tests.capture.harness import check
from tests.capture.program_lines import ARITHMETIC, ARRAYS

FUNCTIONS = """
# moving
x.reshape(4, 3)
x.reshape(-1)
x.reshape((2, -1))
x.reshape(2, 2, 3).transpose(2, 0, 1)
np.reshape(x, (6, 2))
x.ravel()
x.flatten()
np.transpose(x)
np.swapaxes(x, 0, 1)
np.moveaxis(x[None], 0, -1)
np.expand_dims(x, 0)
np.expand_dims(x, (0, 2))
np.squeeze(x[None])
x[None].squeeze(0)
np.broadcast_to(y, (3, 4))
np.broadcast_to(s, (2, 2))
np.broadcast_arrays(x, y)
np.concatenate([x, x])
np.concatenate([x, x], axis=1)
np.concatenate([v, i[0]])
np.concatenate([x, x], axis=None)
np.concatenate((f, f))
np.stack([y, y])
np.stack([y, y], axis=1)
np.stack([y, y], axis=-1)
np.hstack([y, v])
np.hstack([x, x])
np.vstack([y, y])
np.column_stack([y, y])
np.append(y, 1.0)
np.append(x, x, axis=0)
np.split(y, 2)
np.split(v, [1, 3])
np.split(x, 2, axis=1)
np.flip(x)
np.flip(x, 0)
np.fliplr(x)
np.flipud(x)
np.roll(v, 2)
np.roll(v, -1)
np.roll(x, 1)
np.roll(x, 1, axis=0)
np.roll(x, (1, 2), axis=(0, 1))
np.diff(v)
np.diff(x)
np.diff(x, axis=0)
np.diff(v, n=2)
np.diff(b)
np.tile(y, 2)
np.tile(x, (2, 1))
np.tile(v, (2, 2))
np.repeat(y, 2)
np.repeat(x, 2, axis=0)
x.repeat(3, axis=1)
np.atleast_1d(s)
np.atleast_2d(y)
np.atleast_1d(x)
np.diagonal(x)
np.diagonal(x, 1)
np.diag(y)
np.diag(x)
np.diag(v[:3], 0)
np.tril(x)
np.triu(x, 1)
np.tril(x, -1)
# choosing
np.where(x > 0, x, 0)
np.where(b, y, -y)
np.where(x > 0, 1, 0)
np.where(b, 1.5, f[0])
np.where(b, u[0], k)
np.clip(x, -1, 2)
x.clip(0)
x.clip(max=1)
np.clip(i, 0, 3)
np.clip(x, y - 1, y + 1)
np.clip(u, 1, 200)
np.maximum(x, 0)
np.minimum(x, y)
np.fmax(x, y)
np.sign(x)
np.nan_to_num(x / 0)
np.isclose(x, x + 1e-9)
np.allclose(x, x)
np.heaviside(x, 0.5)
np.isnan(x / x)
np.isfinite(x)
np.logical_not(b)
np.logical_and(x > 0, b)
np.logical_xor(b, True)
# functions
np.exp(x)
np.log(abs(x) + 1)
np.sqrt(abs(x))
np.sin(x) ** 2 + np.cos(x) ** 2
np.tanh(i)
np.exp(k)
np.exp(u)
np.exp(f)
np.log1p(v * v)
np.expm1(y)
np.square(i)
np.cbrt(x)
np.reciprocal(v)
np.hypot(x, 1)
np.arctan2(x, y)
np.floor(x / 3)
np.ceil(y)
np.rint(x / 2)
np.trunc(y)
np.floor(i)
np.round(x)
np.round(x / 3, 2)
x.round(1)
np.around(y, 1)
np.fix(y)
np.power(2, i[0])
np.float_power(x, 2)
np.mod(x, 3)
np.fmod(x, 3)
np.remainder(i, 2)
np.floor_divide(i, 2)
np.true_divide(i, 2)
np.abs(i)
np.absolute(z)
np.fabs(y)
np.negative(x)
np.positive(x)
np.copysign(x, -1)
np.logaddexp(x, y)
np.gcd(i, 2)
np.left_shift(i, 1)
np.bitwise_and(i, 3)
np.invert(b)
np.deg2rad(x)
np.degrees(y)
np.sinc(y)
np.add(x, y)
np.add(x, y, dtype=np.float32)
np.multiply(u, u)
np.multiply(u, u, dtype=np.int32)
np.exp(2.0)
np.sqrt(4)
np.pi * y
np.e
np.inf - x
np.maximum(s, 2)
np.isscalar(s)
# making
np.zeros(3)
np.zeros((2, n))
np.zeros(x.shape)
np.zeros(x.shape[0])
np.zeros(x.shape, dtype=int)
np.zeros_like(x)
np.zeros_like(i)
np.ones_like(x, dtype=bool)
np.ones((2, x.shape[1]))
np.full((2, 2), s)
np.full(3, 7)
np.full_like(x, n)
np.full((2,), 1, dtype=np.float32)
np.empty(0)
np.arange(5)
np.arange(n)
np.arange(1, n)
np.arange(0, 10, 3)
np.arange(5, 0, -2)
np.arange(0.0, 1.0, 0.25)
np.arange(x.shape[0])
np.arange(x.shape[1], dtype=float)
np.arange(3.0)
np.arange(len(v)) * v
np.linspace(0, 1, 5)
np.linspace(0, 1, n)
np.linspace(s, 3, 4)
np.linspace(0, 1, 4, endpoint=False)
np.linspace(v.min(), v.max(), 6)
np.linspace(0, 1, x.shape[0])
np.eye(3)
np.eye(x.shape[0])
np.eye(2, 3)
np.eye(3, k=1)
np.identity(2)
np.tri(3)
np.empty_like(none)
np.ones(())
np.zeros(())
# Python
math.sin(s)
math.sqrt(s) + n
math.pi * x
math.exp(x[0, 0])
math.floor(2.5)
len(x)
x.shape
x.ndim
x.size
x.dtype == np.float64
x.shape[0] * 2
float(2)
[a * 2 for a in v]
[a for a in range(n)]
sum([a for a in v])
{"a": x + 1, "b": [y, (s, n)]}
(lambda t: t + 1)(x)
list(map(lambda t: t * 2, v))
[row.sum() for row in x]
tuple(x.shape)
x if n > 2 else y
[a + b_ for a, b_ in zip(v, y)]
[k_ * a for k_, a in enumerate(y)]
min(3, n)
x.shape == (3, 4)
isinstance(x, float)
x.nbytes
# sorting and taking
np.sort(v)
np.sort(x, axis=0)
np.sort(x, axis=None)
np.argsort(v)
v.argsort()
np.argsort(x, axis=0)
np.sort(v)[::-1]
x[np.argsort(v[:3])]
np.take(v, [0, 2])
np.take(x, [0, 2], axis=1)
v.take([[0, 1], [2, -1]])
np.take(v, [7, -9], mode="wrap")
np.take(v, [7, -9], mode="clip")
np.take(x, 1, axis=0)
np.take_along_axis(x, np.argsort(x, axis=1), axis=1)
v[[0, 2]]
v[[]]
v[np.array([1, 1, -1])]
v[i % 4]
np.tile(1, 2)[np.array([1, 0])]
np.cumsum(s, axis=-1)
x[[0, 2]]
x[:, [0, 2]]
x[[0, 1], [1, 2]]
x[[0, 1], :]
x[1, [0, 2]]
x[[0, 2], 1]
x[[[0], [1]], [0, 3]]
x[None][:, [0, 1], [2, 3]]
x[None][0, :, [1, 2]]
x[None][[0], :, [1, 2]]
x.reshape(3, 2, 2)[[0, 1], :, [1, 0]]
x.reshape(3, 2, 2)[:, [0, 1], [1, 0]]
x[[0, 1], None, [1, 2]]
x[np.array([0, 1])[:, None], np.arange(2)]
x[np.arange(3), i[0] - 1]
v[v.argmax()]
x[x.sum(1).argmax()]
x[:, x.sum(0).argmin()]
u[[True and 1]]
v[np.uint8([1, 2])]
np.eye(5)[np.array([0, 3])]
"""

ERRORS = """
x + v
x @ v
v @ x
x.reshape(5, 2)
x[3]
x[:, 4]
x[0, 0, 0]
x.sum(axis=2)
x.sum(axis=(0, 0))
np.concatenate([x, y])
np.stack([x, y])
np.concatenate([x, v[:, None]], axis=1)
b - b
-b
~x
x & 1
x << 1
z // 2
z < 1
u + 256
u - 300
k * 1000
np.uint8(255) + 300
np.max(none)
np.argmax(none, axis=0)
x[1.5]
x["a"]
x[[0.5]]
x[[5]]
x[[0, 1], [1, 2, 3]]
x.transpose(0, 0)
x.transpose(2, 1)
np.dot(x, v)
np.inner(x, v)
np.squeeze(x, axis=0)
np.broadcast_to(x, (3, 3))
np.einsum("ij,j->i", x, v)
np.einsum("ij,jk->ik", x)
len(zero_d)
zero_d[0]
iter(zero_d)
[a for a in zero_d]
np.zeros(-1)
np.zeros((2, -3))
np.split(v, 2)
np.linalg.inv(x)
np.linalg.solve(x[:, :3], y)
np.expand_dims(x, 5)
np.moveaxis(x, 0, 3)
x.undefined
y.reshape(-1, 3)
undefined_name
np.arange(5)[7]
1 / 0
x[::0]
np.full((2, 2), y)[0]
x.max(axis=5)
np.sort(x, axis=3)
np.take(v, [9])
v[[9]]
x[i]
i ** -1
2 ** (-i)
np.exp(x, x, x, x)
np.arctan2(x)
"""


def lines(text: str) -> list[str]:
    return [line for line in text.strip().splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("source", lines(ARITHMETIC) + lines(FUNCTIONS))
def test_expression(source: str):
    signs_of_zeros_differ = (
        "tensordot" in source or "einsum" in source
    )  # NumPy adds products to 0.0, which loses a zero's sign
    check(source, 1e-15 if signs_of_zeros_differ else 0.0, **ARRAYS)


@pytest.mark.parametrize("source", lines(ERRORS))
def test_error(source: str):
    check(source, **ARRAYS)
