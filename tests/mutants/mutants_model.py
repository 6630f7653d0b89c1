"""Mistakes in the encoder, the decoders, the cells, the output layer and the loss."""

from __future__ import annotations

from mutant import Mutant

ORACLE = "tests/unit/model/test_oracle.py"
DROPOUT = "tests/unit/model/test_dropout_places.py"
ENCODER, DECODER = "nmtflex/model/encoders/recurrent.py", "nmtflex/model/decoders/base.py"
BAHDANAU, LUONG = "nmtflex/model/decoders/bahdanau.py", "nmtflex/model/decoders/luong.py"
OUTPUT, BUILD = "nmtflex/layers/output.py", "nmtflex/model/build.py"
CELLS, SEQ2SEQ = "nmtflex/layers/cells.py", "nmtflex/model/seq2seq.py"

MODEL = [
    Mutant(
        ENCODER,
        "torch.cat([h[0], h[1]], dim=1)",
        "torch.cat([h[1], h[0]], dim=1)",
        "the final states of the two directions are swapped",
        ORACLE,
    ),
    Mutant(
        ENCODER,
        "self.dropout(states).index_select(0, order)",
        "states.index_select(0, order)",
        "no dropout in the encoder",
        DROPOUT,
    ),
    Mutant(
        ENCODER,
        "for layer in self.layers:",
        "for layer in self.layers[:1]:",
        "the encoder stops after its first layer",
        ORACLE,
    ),
    Mutant(
        DECODER,
        "parts = torch.tanh(self.bridge(encoded.final)).chunk(",
        "parts = self.bridge(encoded.final).chunk(",
        "the decoder starts without tanh",
        ORACLE,
    ),
    Mutant(
        DECODER,
        "fed = output = torch.tanh(self.attentional(output))",
        "output = torch.tanh(self.attentional(output))",
        "Luong's decoder is fed the context, not the attentional vector",
        ORACLE,
    ),
    Mutant(
        DECODER,
        "output = torch.cat([h, context], dim=1)\n        fed = context",
        "output = torch.cat([h, context], dim=1)\n        fed = output",
        "without the attentional layer, Luong's decoder is fed its state",
        ORACLE,
    ),
    Mutant(
        DECODER,
        "self.attention(h, feedback, memory, rows, attending, trace)",
        "self.attention(state[self.stack.top], feedback, memory, rows, attending, trace)",
        "Luong's decoder attends with h[t-1]",
        ORACLE,
    ),
    Mutant(
        DECODER,
        "            cells[self.stack.top], feedback, memory, rows, attending, trace",
        "            cells[0], feedback, memory, rows, attending, trace",
        "Bahdanau's decoder attends with the bottom layer",
        ORACLE,
    ),
    Mutant(
        DECODER,
        "        h = cells[self.stack.top]\n",
        "        h = cells[0]\n",
        "Luong's decoder attends with, and predicts from, the bottom layer",
        ORACLE,
    ),
    Mutant(
        CELLS,
        "self.embedding_gates(self.dropout(embedded))",
        "self.embedding_gates(embedded)",
        "no dropout on the word's side of the cells",
        DROPOUT,
    ),
    Mutant(
        CELLS,
        "new += cell(gates, self.dropout(extra), state",
        "new += cell(gates, extra, state",
        "no dropout on the step's side of the cells and between layers",
        DROPOUT,
    ),
    Mutant(
        CELLS,
        "gates, extra = self.layer_biases[layer - 1], new[-self.num_parts]",
        "gates, extra = self.layer_biases[layer - 1], new[-1]",
        "the second LSTM layer reads c, not h, of the first",
        ORACLE,
    ),
    Mutant(
        CELLS,
        "return (n + z * (h - n),)",
        "return (h + z * (n - h),)",
        "the GRU's update gate is turned round",
        ORACLE,
    ),
    Mutant(
        CELLS,
        "n_in + torch.sigmoid(r_in + r_h) * (n_h + self.candidate_bias)",
        "n_in + self.candidate_bias + torch.sigmoid(r_in + r_h) * n_h",
        "the GRU's candidate bias stands outside the reset gate",
        ORACLE,
    ),
    Mutant(
        SEQ2SEQ,
        "return output if self.bottleneck is None else self.bottleneck(output)",
        "return output if self.bottleneck is None else self.bottleneck(output).relu()",
        "a ReLU after the bottleneck",
        ORACLE,
    ),
    Mutant(
        SEQ2SEQ,
        "        output = self.dropout(output)\n",
        "",
        "no dropout on the output vector",
        DROPOUT,
    ),
    Mutant(
        SEQ2SEQ,
        "((gates * real).sum(1) / real.sum(1)).sum()",
        "((gates * real).sum(1) / real.shape[1]).sum()",
        "the mean gate is taken over padding",
        ORACLE,
    ),
    Mutant(
        SEQ2SEQ,
        "objective = objective - beta * gate",
        "objective = objective + beta * gate",
        "finetuning closes the gate",
        ORACLE,
    ),
    Mutant(
        SEQ2SEQ,
        "logits = logits.to(precise(logits.dtype)) + self.projection.bias",
        "logits = logits.to(precise(logits.dtype))",
        "forced decoding leaves the output bias out",
        ORACLE,
    ),
    Mutant(
        SEQ2SEQ,
        "of_chunk = None if only is None else only[chunk]",
        "of_chunk = None if only is None else only[: len(hidden[chunk])]",
        "past 64 hypotheses, EOS is forced on others than have reached the limit",
        "tests/unit/layers/test_output_chunks.py",
    ),
    Mutant(
        "nmtflex/layers/embedding.py",
        "return found * self.scale if self.scale != 1.0 else found",
        "return found",
        "tied embeddings are not scaled",
        ORACLE,
    ),
    Mutant(
        "nmtflex/model/freeze.py",
        "embedded = embedding(torch.arange(model.target_size, device=model.device))",
        "embedded = embedding.weight",
        "the word table of a frozen model leaves the embeddings' scale out",
        ORACLE,
    ),
    Mutant(
        "nmtflex/ops/vocabulary/cross_entropy.py",
        "self.grad_bias += logits.sum(0)",
        "self.grad_bias = logits.sum(0)",
        "the output bias learns from the last chunk of a batch alone",
        "tests/unit/ops/test_cross_entropy.py",
    ),
    Mutant(
        "nmtflex/ops/vocabulary/cross_entropy.py",
        "torch.mm(grads, self.weight, out=self.grad_hidden[rows])",
        "torch.mm(grads, self.weight, out=self.grad_hidden[: len(grads)])",
        "the gradient of a chunk lands in the place of the first one's",
        "tests/unit/ops/test_cross_entropy.py",
    ),
    Mutant(
        "nmtflex/runs/threshold.py",
        "return math.log10(mean)",
        "return math.log(mean)",
        "--tau auto is a natural logarithm",
        "tests/unit/runs/test_threshold.py",
    ),
    Mutant(
        "nmtflex/runs/weights.py",
        "if here != there:",
        "if here is None or there is None:",
        "weights of other shapes are taken",
        "tests/unit/runs/test_weights.py",
    ),
]
