"""Arrays of every kind, and lines of arithmetic, indexing, reductions and products over them, for ``test_programs``."""

import numpy as np

X = np.arange(12.0).reshape(3, 4) - 5
ARRAYS = {
    "x": X,
    "y": np.linspace(-1, 2, 4),
    "v": np.array([3.0, -1.0, 2.0, 0.5, 7.0]),
    "i": np.array([[3, 1, 2], [0, -4, 5]]),
    "b": np.array([True, False, True, True]),
    "z": np.array([1 + 2j, -0.5j, 3.0]),
    "f": np.array([0.5, -1.5, 2.25], np.float32),
    "u": np.array([0, 1, 255], np.uint8),
    "k": np.array([7, -7, 0, 3], np.int8),
    "one": np.array([4.0]),
    "none": np.zeros((0, 3)),
    "zero_d": np.array(2.5),
    "flipped": np.arange(6.0)[::-1],
    "strided": np.arange(10.0)[1:8:3],
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "s": 1.5,
    "n": 3,
    "c": 2 - 1j,
    "h": np.float32(0.25),
    "m": np.int16(300),
    "flag": True,
}

ARITHMETIC = """
# arithmetic and rank-0 forms
x + y
x * 2 - 1
2 ** y
-x
+x
abs(x)
~i
~b
x // 2
x % 3
x @ y
x[0] + s
s + 1
s * n
n + 1
n / 2
n // 2
-n ** 2
c * 2
c.real
abs(c)
h + 1
h * s
h + np.float64(1)
m + 1
m * n
flag + 1
flag & True
x.sum()
x.sum() + 1
x[1, 2]
x[1, 2] + 1
f[0] * 2
f + h
f + s
f + m
f * n
u + 1
u - 1
u + m
k // 2
k % 3
k // u[:1].astype(np.int8)
i / 2
i // 0
i % 0
i >> 1
i << 2
i & 3
i | 8
i ^ 5
b & (y > 0)
b + b
b * 2
b | True
b ^ b
zero_d + 1
zero_d * zero_d
-zero_d
zero_d.sum()
zero_d[()]
zero_d[...]
zero_d.reshape(1)
np.array(2.0)
np.array(2.0) * f
np.array(2)
np.float64(2) * f
np.int8(5) + np.int8(100)
np.array([1, 2, 3])
np.array([1, 2.5])
np.array([[1, 2], [3, 4]], dtype=np.float32)
np.array([s, 2, n])
np.array([x[0, 0], 1.0])
np.array([x[0], y])
np.asarray(x)
np.asarray([1, 2]) + x[0, :2]
np.array(x, dtype=np.int32)
x.astype(int)
x.astype(np.float32).astype(bool)
z * 2
z.real
z.imag
z.conj()
np.conj(z) * z
abs(z)
np.angle(z)
z == z
z + f[0]
z.real ** 2 + z.imag ** 2
x.real
x.imag
divmod(x, 2)
divmod(i, 3)
pow(y, 2)
x ** 2
x ** 0.5
y ** -1
i ** 2
2 ** i[0]

x == y
x != y
x < y
x <= 0
0 < x
s < 1
n == 3
x > s
# empty, one element, views
none + 1
none.sum()
none.sum(axis=0)
none.mean(axis=1)
none * np.ones(3)
none.T
np.max(none, axis=1)
none.prod()
none.reshape(3, 0)
one + x
one * 2
one[0]
one.sum()
one.reshape(())
flipped + 1
flipped[::-1]
strided * 2
fortran + 1
fortran.T
fortran.ravel()
fortran.reshape(3, 2)
# slices
x[1:3]
x[:, 1:]
x[::-1]
x[:, ::-2]
x[-2:]
x[5:2]
x[1:n-1]
x[..., 0]
x[None]
x[:, None, :]
x[0, None]
x[:, np.newaxis] * y
x[-1, -1]
x[1:2, ::2]
x[-100:100]
x[100:]
v[3:0:-1]
v[::-1][1:3]
v[-1:-4:-2]
v[:0]
v[1:-1] - v[:-2]
v[len(v) // 2:]
v[v.shape[0] - 2:]
v[:n]
v[-n:]
x[n - 1]
x[True and 1]
x.T[1]
x.T @ x
x.mT
x[0][1]
# reductions
x.sum(0)
x.sum(axis=1, keepdims=True)
x.sum((0, 1))
np.sum(x, axis=(0, 1), keepdims=True)
np.sum(x, dtype=np.float32)
np.sum(b)
np.sum(u)
np.sum(k, dtype=np.int8)
np.sum(f)
x.mean()
x.mean(0)
np.mean(i)
np.mean(f)
np.mean(b)
np.mean(x, axis=-1, keepdims=True)
x.max()
x.min(axis=0)
np.amax(x, axis=(0, 1))
x.argmax()
x.argmin(axis=1)
np.argmax(x, axis=0, keepdims=True)
x.any()
(x > 0).all(axis=0)
np.all(x)
x.prod()
np.prod(i, axis=0)
x.var()
x.std()
np.var(x, axis=0, ddof=1)
np.std(x, axis=1, keepdims=True)
np.std(i)
np.ptp(x)
np.ptp(x, axis=0)
np.count_nonzero(x > 0)
np.count_nonzero(i, axis=1)
np.average(x)
np.average(y, weights=b)
np.cumsum(x)
x.cumsum(axis=1)
np.cumprod(v)
np.cumsum(u)
np.median(v)
np.median(x, axis=0)
np.median(x, axis=1, keepdims=True)
np.median(i)
sum(v)
max(y.shape)
np.sum([1, 2, 3])
np.sum([s, 2.0])
np.max([x[0, 0], x[1, 1]])
z.sum()
z.mean()
np.var(z)
np.trace(x)
np.trace(x, offset=1)
x.trace()
np.add.reduce(x)
np.add.reduce(x, axis=1)
np.add.reduce(x, axis=None)
np.multiply.reduce(v)
np.maximum.reduce(x, axis=0)
np.add.accumulate(v)
np.multiply.outer(v, y)
np.subtract.outer(y, y)
np.logical_and.reduce(b)
np.linalg.norm(v)
# products
np.dot(x, y)
x.dot(y)
np.dot(y, y)
np.dot(2, y)
np.dot(x, x.T)
np.inner(x, x)
np.outer(v, y)
np.vdot(z, z)
np.tensordot(x, x, axes=([1], [1]))
np.tensordot(x, x.T, axes=1)
np.tensordot(y, v, axes=0)
np.matmul(x, x.T)
np.einsum("ij,j->i", x, y)
np.einsum("ij,kj->ik", x, x)
np.einsum("ij->j", x)
np.einsum("ii", x[:, :3])
np.einsum("ii->i", x[:, :3])
np.einsum("...j,j", x, y)
np.einsum("...j,j->...", x, y)
np.einsum("i,j->ij", v, y)
np.einsum("i,i", y, y)
np.einsum("ij->ji", x)
np.kron(y, v)
np.kron(x, i)
np.cross(v[:3], y[:3])
i @ i.T
u @ u
b @ b
"""
