"""The decoders' readouts against loops from the papers."""

from __future__ import annotations

import torch

from nmtflex.model.decoder import DeepOutput


@torch.no_grad()
def test_deep_output_is_the_larger_of_each_pair():
    """Bahdanau, Cho and Bengio (2015), appendix A.2.2: maxout over what h, i and c make."""
    torch.manual_seed(1)
    deep = DeepOutput(embedding_size=3, context_size=4, size=5).double()
    word, h, c = (torch.randn(2, size, dtype=torch.float64) for size in (3, 5, 4))
    found = deep(deep.words(word), h, c)
    weights = deep.words.weight.tolist(), deep.joint.weight.tolist()
    for n in range(2):
        made = []
        for unit in range(10):
            total = float(deep.words.bias[unit])
            total += sum(w * x for w, x in zip(weights[0][unit], word[n].tolist(), strict=True))
            joined = h[n].tolist() + c[n].tolist()
            total += sum(w * x for w, x in zip(weights[1][unit], joined, strict=True))
            made.append(total)
        expected = [max(made[2 * j], made[2 * j + 1]) for j in range(5)]
        torch.testing.assert_close(
            found[n], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12
        )
