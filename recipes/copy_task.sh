#!/usr/bin/env bash
# The copy task of the memory-attention paper (001): sequences of up to L of 20 symbols; no
# attention, global attention, memories of K vectors with and without position encodings, four
# scoring pairs.
#
#   recipes/copy_task.sh
#   SCALE=small recipes/copy_task.sh
#
# Full: L 10, 50, 100, 200; K 1, 4, 16, 32, 64; two layers of 256 units (the encoder's each way),
# 256 embedding units, dropout 0.2, Adam 1e-4, batches of 128, 200,000 updates, validated every
# 2,000; beam 10. The scoring pairs are compared at the last L with K 32. Unlike the paper: lengths
# from 1 and not from 0; seconds are those of the test data, and not of as much validation data; it
# names no clipping (3 here), nor Luong's vector between context and softmax (--decoder luong).
# Small, a subset: none, global and K 32 with encodings at L 10 and 50; one layer of 128 units each
# way, 256 decoder and 64 embedding units, no dropout, Adam 2e-3, two epochs = 1,564 updates.
#
# Another subset: LENGTHS="10 50", SLOTS="1 32" (K), PLAIN="32" (those of SLOTS that are trained
# without encodings too), and for the small size EPOCHS.
source "$(dirname "$0")/common.sh"

if small; then
  lengths=${LENGTHS:-10 50} slots=${SLOTS:-32} plain=${PLAIN:-} pairs=""
  model=(--embedding-size 64 --encoder-size 128 --decoder-size 256 --dropout 0)
  training=(--lr 2e-3 $(epochs "${EPOCHS:-2}") --validate-every 500 --dtype $FAST)
  sizes="small: one layer, 128 + 128 and 256 units, ${EPOCHS:-2} epochs, seed 1"
else
  lengths=${LENGTHS:-10 50 100 200} slots=${SLOTS:-1 4 16 32 64}
  plain=${PLAIN:-$slots}
  pairs="softmax-softmax softmax-sigmoid sigmoid-sigmoid"   # sigmoid-softmax is memory32
  model=(--embedding-size 256 --encoder-size 256 --decoder-size 256 --dropout 0.2
    --encoder-layers 2 --decoder-layers 2)
  training=(--lr 1e-4 --updates "${UPDATES:-200000}" --validate-every 2000)
  sizes="full: two layers of 256 units, 200,000 updates, seed 1"
fi

for K in $plain; do
  [[ " $slots " == *" $K "* ]] || stop "PLAIN has $K, which is not in SLOTS ($slots)"
done

# copy NAME OPTION...: train on sequences of up to $length, and score with the paper's beam.
copy() {
  local run=copy$length-$1
  train "$run" "copy$length.prepared" "${@:2}" --decoder luong "${model[@]}" \
    --batch-sentences 128 --clip 3 --valid-beam 1 "${training[@]}"
  score "$run.test" "$run" --split test --beam 10
  rows+="L $length, $1 | $run.test |"$'\n'
  runs+=("$OUT/$run")
}

rows="" remarks=""
for length in $lengths; do
  corpus=$OUT/copy$length
  runs=()
  step "$corpus" generate copy --max-length "$length" --out "$corpus"
  prepare "copy$length.prepared" --source-lang src --target-lang tgt \
    --train "$corpus/train" --valid "$corpus/valid" --test "$corpus/test" --max-length "$length"
  copy none --attention none
  copy global --attention global --score additive
  for K in $slots; do
    copy "memory$K" --attention memory --K "$K"
  done
  for K in $plain; do
    copy "memory$K-plain" --attention memory --K "$K" --no-position-encoding
  done
done

for pair in $pairs; do
  copy "memory32-$pair" --attention memory --K 32 \
    --encoder-scoring "${pair%-*}" --decoder-scoring "${pair#*-}"
done

# Learning curves at the last L (figure 3).
step "$OUT/copy$length-learning.png" plot "${runs[@]}" --kind learning \
  --output "$OUT/copy$length-learning.png"

# How sharply the slots look at the source, with position encodings and without.
for K in $plain; do
  for run in "copy$length-memory$K" "copy$length-memory$K-plain"; do
    step "$OUT/$run.jsonl" translate "$OUT/$run" --input "$OUT/copy$length/test.src" \
      --output "$OUT/$run.test.tgt" --attention-output "$OUT/$run.jsonl"
    entropy=$("$PYTHON" "$RECIPES/alpha_entropy.py" "$OUT/$run.jsonl")
    remarks+="$run: $entropy"$'\n'
  done
done

table "Copy task, test data, 1,000 sequences, beam 10 ($sizes)" << ROWS
$rows$remarks
The figures of the paper's table 1 are not in the text at hand. It says: BLEU rises with K up to a
point that depends on L; K 1 cannot fit L 200, 32 and 64 nearly equal global attention; encodings
make no difference; the gap in speed grows with L.
ROWS
