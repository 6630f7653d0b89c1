"""What a scan does, from Raffel et al. (2017): shared by monotonic and chunkwise attention."""

from __future__ import annotations

import math

from loops import dot


def energy_by_hand(energy, r, h, s):
    """Section 2.4: g v / |v| . tanh(W h + U s + b) + r."""
    weights = {key: value.tolist() for key, value in energy.state_dict().items()}
    v = weights["v"]
    norm = math.sqrt(sum(x * x for x in v))
    hidden = [
        math.tanh(dot(w, h) + dot(u, s) + b)
        for w, u, b in zip(
            weights["query.weight"], weights["states.weight"], weights["query.bias"], strict=True
        )
    ]
    return weights["g"][0] * dot([x / norm for x in v], hidden) + r


def stop_by_hand(attention, visit, begin):
    """The first position from ``begin`` on with p >= 1/2, or None; and the energies computed."""
    computed = 0
    for s in range(begin, len(visit.states)):
        computed += 1
        energy = energy_by_hand(attention.energy, attention.r.item(), visit.query, visit.states[s])
        if 1 / (1 + math.exp(-energy)) >= 0.5:
            return s, computed
    return None, computed
