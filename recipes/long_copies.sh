#!/usr/bin/env bash
# What flexible attention saves on long sources, with trained models and outputs as long as the
# sources: global and flexible attention in LSTMs learn to copy up to 50 symbols and then, with these
# weights, up to 440. They decode sources of 400 symbols on average, and of 2,000, in turns.
#
#   recipes/long_copies.sh
#   SCALE=small recipes/long_copies.sh     # 400 symbols alone
#
#   ROUNDS    of the decoding benchmarks (3)
#
# 20 symbols; one layer of 128 units each way, a decoder of 256 units, embeddings of 64, no dropout;
# 100,000 sequences of up to 50 and 10,000 of up to 440, one epoch each (782 and 313 updates). tau is
# the smallest that loses at most half a BLEU on validation data of up to 440. An output may have 20
# symbols more than its source, so that loops do not make one longer than another.
source "$(dirname "$0")/common.sh"
ROUNDS=${ROUNDS:-3}
taus=0.1,0.2,0.3,0.5,0.7,1,1.38,2,3,inf

# stage LENGTH TRAIN VALID SENTENCES LR: sequences of up to LENGTH symbols; then a training of each
# attention, so many sentences an update.
stage() {
  local corpus=$OUT/long$1 attention like=() start=()
  step "$corpus" generate copy --max-length $1 --train $2 --valid $3 --test 0 --out "$corpus"
  [ -z "$last" ] || like=(--like "$OUT/long$last.prepared")
  prepare long$1.prepared ${like[@]+"${like[@]}"} --source-lang src --target-lang tgt \
    --train "$corpus/train" --valid "$corpus/valid" --max-length $1
  for attention in global flexible; do
    [ -z "$last" ] || start=(--init-from "$OUT/long$last-$attention")
    train long$1-$attention long$1.prepared --attention $attention --decoder luong \
      --embedding-size 64 --encoder-size 128 --decoder-size 256 --dropout 0 --batch-sentences $4 \
      --lr $5 --schedule cosine --warmup 50 $(epochs 1) --clip 3 --dtype $FAST --valid-beam 1 \
      ${start[@]+"${start[@]}"}
  done
  last=$1
}

# measured LENGTH SEQUENCES: scores and speed on sequences of LENGTH symbols, a tenth more or less.
measured() {
  local corpus=$OUT/copies$1
  step "$corpus" generate copy --min-length $(($1 * 9 / 10)) --max-length $(($1 * 11 / 10)) \
    --train 1 --valid 0 --test $2 --out "$corpus"
  local text=(--source "$corpus/test.src" --reference "$corpus/test.tgt" --beam 5
    --max-length-ratio 1)
  score long$1.global long440-global "${text[@]}"
  score long$1.flexible long440-flexible "${text[@]}" --tau $tau
  step --stdout "$OUT/long$1.speed.json" bench "$OUT/long440-global" "$OUT/long440-flexible" \
    "${text[@]}" --repeats $ROUNDS --json --output "$OUT/long$1.speed" --tau $tau
  rows+="$1 symbols, global | long$1.global |"$'\n'
  rows+="$1 symbols, flexible, tau $tau | long$1.flexible |"$'\n'
  speeds+=(long$1.speed)
}

last="" rows="" speeds=()
stage 50 100000 500 128 2e-3
stage 440 10000 100 32 1e-3
sweep long440.sweep long440-flexible --split valid --beam 5 --tau $taus --within 0.5
tau=$(value long440.sweep chosen.tau)
tau=${tau:-inf}
measured 400 100
sizes="small: 400 symbols"
if ! small; then
  measured 2000 30
  sizes="full: 400 and 2,000 symbols"
fi

table "Copies of long sequences, beam 5 ($sizes)" << ROWS
$rows
ROWS
"$PYTHON" "$RECIPES/speeds.py" "$OUT" "${speeds[@]}"
