#!/usr/bin/env bash
# KFTT, English to Japanese: flexible attention on sentences of 22 words, its finetuning, and the
# curve of BLEU against computations a step.
#
#   DATA=path/to/kftt recipes/kftt_en_ja.sh
#
# DATA holds train, dev and test, each .en and .ja (raw text; .gz, .xz or .zst will do). Of the
# first 84,130 training pairs some 50,000 have at most 30 words on either side.
source "$(dirname "$0")/common.sh"
DATA=${DATA:?set DATA to the folder that holds train, dev and test}
need "$DATA"/{train,dev,test}.{en,ja}

prepare "$OUT/kftt.prepared" --source-lang en --target-lang ja \
  --train "$DATA/train" --valid "$DATA/dev" --test "$DATA/test" \
  --source-tokenizer moses --target-tokenizer mecab --max-pairs 84130 --max-length 30 \
  --source-vocabulary 10000 --target-vocabulary 10000

# bfloat16 halves the time on a CPU with AVX-512 BF16 or AMX; without either, float32 is faster.
$NMTFLEX train "$OUT/kftt.prepared" --run "$OUT/kftt-flexible" \
  --attention flexible --sigma 1.5 --score additive --decoder luong \
  --embedding-size 256 --encoder-size 256 --decoder-size 256 --dropout 0.2 \
  --batch-sentences 32 --lr 1e-3 --clip 3 --epochs 5 --valid-beam 1 --dtype bfloat16
# The paper's finetuning, and the same under a threshold.
$NMTFLEX finetune "$OUT/kftt-flexible" --run "$OUT/kftt-finetuned" --beta 0.1 --epochs 1 \
  --valid-beam 1 --dtype bfloat16
$NMTFLEX finetune "$OUT/kftt-flexible" --run "$OUT/kftt-under" --beta 0.1 --epochs 1 \
  --train-tau 0.5 --tau 0.5 --valid-beam 1 --dtype bfloat16

for run in flexible finetuned under; do
  $NMTFLEX sweep "$OUT/kftt-$run" --split valid --beam 5 --tau "$TAUS" --within 0.5
  $NMTFLEX sweep "$OUT/kftt-$run" --split test --beam 5 --tau "$TAUS"
done
$NMTFLEX plot "$OUT"/kftt-{flexible,finetuned,under}/sweep-test-beam5.csv --output "$OUT/kftt.png"
