#!/usr/bin/env bash
# Whether a large corpus fits: 20 million pairs with a million different words on each side.
#
#   recipes/benchmark_sizes.sh                 # some 25 GB of disk
#   PAIRS=1000000 recipes/benchmark_sizes.sh
#
# Makes the text (generate zipf), prepares it in two processes with BPE learned from a sample, and
# trains a small model for one update, and goes on from its checkpoint to a hundred and to two
# hundred. Start-up is what such a command takes beyond the seconds that its last line tells.
source "$(dirname "$0")/common.sh"
PAIRS=${PAIRS:-20000000}
mkdir -p "$OUT"

corpus=$OUT/zipf prepared=$OUT/zipf.prepared run=$OUT/zipf.run
rm -rf "$corpus" "$prepared" "$run"
measure $NMTFLEX generate zipf --types 1000000 --train "$PAIRS" --seed 1 --out "$corpus"
measure $NMTFLEX preprocess --source-lang src --target-lang tgt --train "$corpus/train" \
  --valid "$corpus/valid" --bpe 8000 --joint --bpe-sample 1000000 --workers 2 --out "$prepared"
for updates in 1 100 200; do
  measure $NMTFLEX train "$prepared" --run "$run" --embedding-size 64 --encoder-size 64 \
    --decoder-size 64 --validate-every 1000000 --log-every 1 --updates $updates
done
