#!/usr/bin/env bash
# KFTT, English to Japanese: global and flexible attention on sentences of 23 words, finetuning, and
# the curve of BLEU against computations a step.
#
#   DATA=path/to/kftt recipes/kftt_en_ja.sh
#   DATA=... SCALE=small recipes/kftt_en_ja.sh
#
# DATA holds train, dev and test, each .en and .ja (raw text; .gz, .xz or .zst will do): the files
# data/orig/kyoto-* of https://www.phontron.com/kftt/download/kftt-data-1.0.tar.gz without "kyoto-".
# They go article by article; the figures of README.md are of 100,000 pairs drawn at random.
# Full: of the first 84,130 training pairs those of at most 30 words on either side (some 50,000),
# 256 units, five epochs. Small: of the first 30,000 pairs (some 18,000), 128 units, six epochs.
source "$(dirname "$0")/common.sh"
need {train,dev,test}.{en,ja}

if small; then
  pairs=30000 words=5000 units=128 length=6 taus=0.2,0.5,1.38,inf
  sizes="small: 30,000 pairs less long ones, 5,000 words, 128 units, six epochs, seed 1"
else
  pairs=84130 words=10000 units=256 length=5
  taus=0.05,0.1,0.2,0.25,0.3,0.35,0.4,0.5,0.6,0.7,1,1.38,2,inf
  sizes="full: 84,130 pairs less long ones, 10,000 words, 256 units, five epochs, seed 1"
fi

prepare kftt.prepared --source-lang en --target-lang ja \
  --train "$DATA/train" --valid "$DATA/dev" --test "$DATA/test" \
  --source-tokenizer moses --target-tokenizer mecab --max-pairs $pairs --max-length 30 \
  --source-vocabulary $words --target-vocabulary $words

for attention in "global" "flexible --sigma 1.5"; do
  train "kftt-${attention%% *}" kftt.prepared --attention $attention --score additive \
    --decoder luong --embedding-size $units --encoder-size $units --decoder-size $units \
    --dropout 0.2 --batch-sentences 32 --lr 1e-3 --clip 3 $(epochs $length) --valid-beam 1 \
    --dtype $FAST
done
# The paper's finetuning, and the same under a threshold.
finetune kftt-finetuned kftt-flexible --beta 0.1 $(epochs 1) --valid-beam 1 --dtype $FAST
finetune kftt-under kftt-flexible --beta 0.1 $(epochs 1) --train-tau 0.5 --tau 0.5 --valid-beam 1 \
  --dtype $FAST

score kftt-global.test kftt-global --split test --beam 5 --ribes
rows="global | kftt-global.test |"$'\n'
for run in flexible finetuned under; do
  sweep "kftt-$run.sweep-valid" "kftt-$run" --split valid --beam 5 --tau $taus --within 0.5
  sweep "kftt-$run.sweep-test" "kftt-$run" --split test --beam 5 --tau $taus
  chosen=$(value "kftt-$run.sweep-valid" chosen.tau)
  for tau in inf ${chosen#inf}; do
    score "kftt-$run.test-$tau" "kftt-$run" --split test --beam 5 --ribes --tau "$tau"
    rows+="$run, tau $tau | kftt-$run.test-$tau |"$'\n'
  done
done
step "$OUT/kftt.png" plot "$OUT"/kftt-{flexible,finetuned,under}.sweep-test.csv \
  --output "$OUT/kftt.png"

table "KFTT, test data, beam 5, BLEU of MeCab's words ($sizes)" << ROWS
$rows
No paper has figures for this corpus; the curve, as figure 4 of 000, is $OUT/kftt.png.
ROWS
