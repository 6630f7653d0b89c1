#!/usr/bin/env bash
# small_parallel_enja, English to Japanese: the yardstick of training speed, and its BLEU.
#
#   DATA=path/to/small_parallel_enja recipes/small_parallel_en_ja.sh
#
# DATA holds train, dev and test, each .en and .ja (tokenised; .gz, .xz or .zst will do). The
# training's closing line gives target tokens a second, validations apart; run it on a quiet machine.
source "$(dirname "$0")/common.sh"
DATA=${DATA:?set DATA to the folder that holds train, dev and test}
need "$DATA"/{train,dev,test}.{en,ja}

prepare "$OUT/enja.prepared" --source-lang en --target-lang ja \
  --train "$DATA/train" --valid "$DATA/dev" --test "$DATA/test" --min-frequency 2

$NMTFLEX train "$OUT/enja.prepared" --run "$OUT/enja" \
  --attention global --score additive --decoder luong \
  --embedding-size 128 --encoder-size 128 --decoder-size 256 --dropout 0.2 \
  --batch-sentences 64 --lr 1e-3 --clip 3 --epochs 6

$NMTFLEX eval "$OUT/enja" --split test --beam 5
