"""Elementary functions for compiled loops, vectorised for float32."""

from __future__ import annotations

import math

import numpy as np

from nmtflex.ops.compiled import by_format


def tanh(x: float) -> float:
    """Return the hyperbolic tangent; vectorised for float32."""
    return math.tanh(x)


def exp(x: float) -> float:
    """Return the exponential; vectorised for float32."""
    return math.exp(x)


# tanh(x) = x P(x^2) / Q(x^2), a minimax fit of the absolute error on [-7.9, 7.9]; beyond, the value
# at the edge is as near to 1 as float32 can tell. Rounding included, it is off by at most 3e-7.
_ONE = np.float32(1)
_EDGE, _LOW_EDGE = np.float32(7.9), np.float32(-7.9)
_P1, _P2 = np.float32(1.3444446e-01), np.float32(3.5716896e-03)
_P3, _P4 = np.float32(2.1903306e-05), np.float32(1.5259515e-08)
_Q1, _Q2 = np.float32(4.677777e-01), np.float32(2.6164388e-02)
_Q3, _Q4 = np.float32(3.4117323e-04), np.float32(8.5304828e-07)


def _tanh_single(x: np.float32) -> np.float32:
    x = max(min(x, _EDGE), _LOW_EDGE)  # in this order NaN stays NaN
    y = x * x
    p = _ONE + y * (_P1 + y * (_P2 + y * (_P3 + y * _P4)))
    q = _ONE + y * (_Q1 + y * (_Q2 + y * (_Q3 + y * _Q4)))
    return x * p / q


# exp(x) = 2^k exp(r) with r = x - k log 2, at most 0.35 from 0, where a Taylor series of degree 7
# is exact to float32. log 2 is split so that the subtraction loses nothing.
_LOG2E, _HALF = np.float32(1.4426950408889634), np.float32(0.5)
_LOG2_HIGH, _LOG2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LEAST, _MOST = np.float32(-87.0), np.float32(88.0)
_E2, _E3, _E4 = np.float32(1 / 2), np.float32(1 / 6), np.float32(1 / 24)
_E5, _E6, _E7 = np.float32(1 / 120), np.float32(1 / 720), np.float32(1 / 5040)
_BIAS, _MANTISSA = np.int32(127), np.int32(23)
_NOTHING = np.float32(0)


def _exp_single(x: np.float32) -> np.float32:
    k = np.floor(max(min(x, _MOST), _LEAST) * _LOG2E + _HALF)
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = _E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * _E7))))
    power = np.int32((np.int32(k) + _BIAS) << _MANTISSA).view(np.float32)
    return _NOTHING if x < _LEAST else power * (_ONE + r * (_ONE + r * p))


by_format(tanh, _tanh_single)
by_format(exp, _exp_single)
