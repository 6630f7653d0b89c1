#!/usr/bin/env bash
# What flexible attention saves on long sources, with trained models whose outputs are equally long:
# global and flexible attention in LSTMs learn to copy up to 50 symbols, and then up to 440 and 2,200
# with the weights of the stage before. Decoding is timed in turns on sources of 400 and 2,000
# symbols on average.
#
#   recipes/long_copies.sh
#
#   ROUNDS    of the decoding benchmarks (3)
#
# 20 symbols; one layer of 128 units each way, a decoder of 256 units, embeddings of 64, no dropout.
# Stages of 100,000, 10,000 and 500 sequences, one epoch each (782, 313 and 63 updates). tau is
# the smallest that loses at most half a BLEU on validation data.
source "$(dirname "$0")/common.sh"
ROUNDS=${ROUNDS:-3}
taus=0.1,0.2,0.3,0.5,0.7,1,1.38,2,3,inf

# stage LENGTH TRAIN VALID SENTENCES LR: sequences of up to LENGTH symbols; then a training of each
# attention, so many sentences an update.
stage() {
  local corpus=$OUT/long$1 attention like=() start=()
  step "$corpus" generate copy --max-length $1 --train $2 --valid $3 --test 0 --out "$corpus"
  step "$corpus-test" generate copy --max-length $1 --min-length $(($1 * 9 / 11)) --train 1 \
    --valid 0 --test 100 --seed 2 --out "$corpus-test"
  [ -z "$last" ] || like=(--like "$OUT/long$last.prepared")
  prepare long$1.prepared ${like[@]+"${like[@]}"} --source-lang src --target-lang tgt \
    --train "$corpus/train" --valid "$corpus/valid" --test "$corpus-test/test" --max-length $1
  for attention in global flexible; do
    [ -z "$last" ] || start=(--init-from "$OUT/long$last-$attention")
    train long$1-$attention long$1.prepared --attention $attention --decoder luong \
      --embedding-size 64 --encoder-size 128 --decoder-size 256 --dropout 0 --batch-sentences $4 \
      --lr $5 --schedule cosine --warmup 50 $(epochs 1) --clip 3 --dtype $FAST --valid-beam 1 \
      ${start[@]+"${start[@]}"}
  done
  last=$1
}

# measured LENGTH: scores of a stage's models, and how fast they decode.
measured() {
  local tau
  sweep long$1-flexible.sweep long$1-flexible --split valid --beam 5 --tau $taus --within 0.5
  tau=$(value long$1-flexible.sweep chosen.tau)
  score long$1-global.test long$1-global --split test --beam 5
  score long$1-flexible.test long$1-flexible --split test --beam 5 --tau ${tau:-inf}
  step --stdout "$OUT/long$1.speed.json" bench "$OUT/long$1-global" "$OUT/long$1-flexible" \
    --beam 5 --repeats $ROUNDS --json --output "$OUT/long$1.speed" --tau ${tau:-inf}
  rows+="up to $1, global | long$1-global.test |"$'\n'
  rows+="up to $1, flexible, tau ${tau:-inf} | long$1-flexible.test |"$'\n'
}

last="" rows=""
stage 50 100000 500 128 2e-3
stage 440 10000 100 32 1e-3
measured 440
speeds=(long440.speed) sizes="small: up to 440 symbols"
if ! small; then
  stage 2200 500 20 8 1e-3
  measured 2200
  speeds+=(long2200.speed) sizes="full: up to 440 and 2,200 symbols"
fi

table "Copies of long sequences, test data, beam 5 ($sizes)" << ROWS
$rows
ROWS
"$PYTHON" "$RECIPES/speeds.py" "$OUT" "${speeds[@]}"
