"""Cases of Fourier transforms."""

import numpy as np

from tensormagic.ops import fft
from tests.ops.cases import case

for _name in ("fft", "ifft", "rfft", "irfft"):
    for _shape, _n, _axis, _norm in [
        ((5,), None, -1, None),
        ((4,), None, -1, "ortho"),
        ((4, 3), None, 0, "forward"),
        ((4, 3), 5, 0, None),
        ((4, 5), 3, 1, "ortho"),
        ((4, 6), 4, -1, "backward"),
        ((1,), 3, 0, None),
        ((3, 0), None, 1, None),
        ((), None, -1, None),
    ]:
        case(
            _name,
            lambda x, name=_name, n=_n, axis=_axis, norm=_norm: getattr(fft, name)(x, n, axis, norm),
            lambda x, name=_name, n=_n, axis=_axis, norm=_norm: getattr(np.fft, name)(x, n, axis, norm),
            _shape,
            label=f"{_shape}-{_n}-{_axis}-{_norm}",
            derivative=0 not in _shape and _shape != () and not (_name == "irfft" and _shape == (1,)),
        )
for _name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
    for _s, _norm in [(None, None), ((4, 5), "ortho")]:
        case(
            _name.removesuffix("2").removesuffix("n"),
            lambda x, name=_name, s=_s, norm=_norm: getattr(fft, name)(x, s, (-2, -1), norm),
            lambda x, name=_name, s=_s, norm=_norm: getattr(np.fft, name)(x, s, (-2, -1), norm),
            (2, 4, 4),
            label=f"{_name}-{_s}",
            derivative=False,
        )
for _name in ("hfft", "ihfft", "fftshift", "ifftshift"):
    case(
        {"hfft": "irfft", "ihfft": "rfft"}.get(_name, "concatenate"),
        lambda x, name=_name: getattr(fft, name)(x),
        lambda x, name=_name: getattr(np.fft, name)(x),
        (5,),
        label=_name,
        derivative=False,
    )
