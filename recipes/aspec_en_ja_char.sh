#!/usr/bin/env bash
# ASPEC, English to Japanese by characters: global and flexible attention, finetuning (002, table
# 2).
#
#   DATA=path/to/ASPEC-JE KYTEA_MODEL=jp-0.4.2-utf8-1.mod recipes/aspec_en_ja_char.sh
#   DATA=... KYTEA_MODEL=... SCALE=small recipes/aspec_en_ja_char.sh
#
# The corpus is that of aspec_en_ja.sh; apply for it at https://jipsti.jst.go.jp/aspec/.
# Full, as in 002: the first 1.5M pairs, LSTMs of 1000 units, batches of 64, Adam 1e-4 halved from
# epoch 4, six epochs. It does not say the rest: embeddings of 1000, 600 before the softmax, clip 3
# and beam 20 are those of 000. The paper's limit of 50 words is one of 500 characters here: a
# corpus of characters knows no words.
# Small: of the first 3,000 pairs those of at most 150 characters, 128 units, 64 before the softmax,
# three epochs of 1e-3, beam 5.
source "$(dirname "$0")/common.sh"
source "$RECIPES/aspec.sh"

if small; then
  corpus=(--max-pairs 3000 --max-length 150) length=3
  sizes="small: 3,000 pairs less those over 150 characters, 128 units, three epochs, beam $beam"
else
  corpus=(--max-pairs 1500000 --max-length 500) length=6
  sizes="full: first 1.5M pairs, 1000 units, six epochs, beam $beam"
fi

aspec aspec-char.prepared "${corpus[@]}" --source-tokenizer char --target-tokenizer char

# fit NAME OPTION...
fit() {
  train "aspec-char-$1" aspec-char.prepared "${@:2}" --score additive "${model[@]}" \
    --batch-sentences "${BATCH:-64}" --lr $rate --halve-from 4 --clip 3 --valid-beam 1 \
    $(epochs $length)
}

fit global --attention global
fit flexible --attention flexible --sigma 1.5
finetune aspec-char-finetuned aspec-char-flexible --beta 0.1 --tau 1.0 --valid-beam 1 $(epochs 1)

wat aspec-char-global.test aspec-char-global
for tau in inf 1.0; do wat "aspec-char-flexible.test-$tau" aspec-char-flexible --tau $tau; done
wat aspec-char-finetuned.test-1.0 aspec-char-finetuned --tau 1.0

table "ASPEC, English to Japanese by characters, test data, WAT's procedure ($sizes)" << ROWS
global | aspec-char-global.test | cps=144.9 bleu=26.18 ribes=0.767
flexible, tau inf | aspec-char-flexible.test-inf | cps=144.9 bleu=26.68 ribes=0.763
flexible, tau 1.0 | aspec-char-flexible.test-1.0 | cps=80.4 bleu=26.18 ribes=0.757
finetuned, tau 1.0 | aspec-char-finetuned.test-1.0 | cps=77.4 bleu=26.23 ribes=0.757
ROWS
