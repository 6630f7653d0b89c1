#!/usr/bin/env bash
# Flexible against global attention, English to Japanese: BLEU, computations a step, and the
# threshold chosen on validation data, over three seeds.
#
#   DATA=path/to/small_parallel_enja recipes/flexible_en_ja.sh
#   DATA=... SEEDS="1" recipes/flexible_en_ja.sh
#
# DATA holds train, dev and test, each .en and .ja (tokenised; .gz, .xz or .zst will do).
source "$(dirname "$0")/common.sh"
DATA=${DATA:?set DATA to the folder that holds train, dev and test}
need "$DATA"/{train,dev,test}.{en,ja}

prepare "$OUT/enja.prepared" --source-lang en --target-lang ja \
  --train "$DATA/train" --valid "$DATA/dev" --test "$DATA/test" --min-frequency 2

for seed in ${SEEDS:-1 2 3}; do
  for attention in global flexible; do
    $NMTFLEX train "$OUT/enja.prepared" --run "$OUT/enja-$attention-$seed" \
      --attention $attention --score additive --decoder luong \
      --embedding-size 128 --encoder-size 128 --decoder-size 256 --dropout 0.2 \
      --batch-sentences 64 --lr 1e-3 --clip 3 --epochs 6 --seed "$seed"
    $NMTFLEX eval "$OUT/enja-$attention-$seed" --split test --beam 5 \
      --output "$OUT/enja-$attention-$seed.test.ja"
  done

  # The paper's finetuning, and one under a threshold, for longer.
  $NMTFLEX finetune "$OUT/enja-flexible-$seed" --run "$OUT/enja-finetuned-$seed" \
    --beta 0.1 --epochs 1 --seed "$seed"
  $NMTFLEX finetune "$OUT/enja-flexible-$seed" --run "$OUT/enja-under-$seed" \
    --beta 0.1 --epochs 4 --halve-from 2 --train-tau 0.4 --tau 0.4 --seed "$seed"
  # The smallest threshold that loses at most half a BLEU on validation data, against the run before
  # finetuning and without a threshold.
  baseline=$(valid_bleu "$OUT/enja-flexible-$seed")
  for run in flexible finetuned under; do
    tau=$(chosen_tau "$OUT/enja-$run-$seed" "$TAUS" --baseline "$baseline")
    $NMTFLEX eval "$OUT/enja-$run-$seed" --split test --beam 5 --tau "${tau:-inf}" \
      --output "$OUT/enja-$run-tau-$seed.test.ja"
  done
done
