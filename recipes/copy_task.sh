#!/usr/bin/env bash
# The copy task of the memory-attention paper, at a size for two cores: sequences of up to 50 of 20
# symbols; no attention, global attention, and memories of 1, 32 and 64 vectors.
#
#   recipes/copy_task.sh
#
# Smaller than in the paper: one layer of 128 (each way) and 256 units instead of two of 256, 64
# embedding units instead of 256, no dropout, a rate of 2e-3 instead of
# 1e-4, three epochs = 2,346 updates instead of 200,000, bfloat16.
source "$(dirname "$0")/common.sh"

[ -d "$OUT/copy50" ] || $NMTFLEX generate copy --max-length 50 --out "$OUT/copy50"
prepare "$OUT/copy50.prepared" --source-lang src --target-lang tgt \
  --train "$OUT/copy50/train" --valid "$OUT/copy50/valid" --test "$OUT/copy50/test"

# copy NAME OPTION...: train with these options, and score with the paper's beam.
copy() {
  local run="$OUT/copy50-$1"
  shift
  $NMTFLEX train "$OUT/copy50.prepared" --run "$run" "$@" --decoder luong \
    --embedding-size 64 --encoder-size 128 --decoder-size 256 --dropout 0 \
    --batch-sentences 128 --lr 2e-3 --clip 3 --epochs 3 \
    --validate-every 500 --valid-beam 1 --dtype bfloat16
  $NMTFLEX eval "$run" --split test --beam 10
}

copy global --attention global --score additive
copy memory32 --attention memory --K 32
copy memory64 --attention memory --K 64
copy none --attention none
copy memory1 --attention memory --K 1

# How sharply the slots look at the source, with position encodings and without.
copy memory32-plain --attention memory --K 32 --no-position-encoding
for run in memory32 memory32-plain; do
  $NMTFLEX translate "$OUT/copy50-$run" --attention-output "$OUT/copy50-$run.jsonl" \
    < "$OUT/copy50/test.src" > "$OUT/copy50-$run.test.tgt"
  ${PYTHON:-python3} "$(dirname "$0")/alpha_entropy.py" "$OUT/copy50-$run.jsonl"
done
