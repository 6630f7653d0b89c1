#!/usr/bin/env bash
# How fast preprocess is, and how much memory it takes, on two million pairs.
#
#   DATA=path/to/multi30k recipes/benchmark_preprocess.sh
#
# Repeats Multi30k's training text (words parted at spaces) to 2,001,000 pairs, prepares it with
# joint BPE of 8,000 merges, then once more with those codes (--like), each in one process.
source "$(dirname "$0")/common.sh"
need train.{de,en}
mkdir -p "$OUT"

for language in de en; do
  text=$(compgen -G "$DATA/train.$language*" | head -n 1)
  case $text in
    *.gz) show="gzip -dc" ;;
    *.xz) show=xzcat ;;
    *.zst) show=zstdcat ;;
    *) show=cat ;;
  esac
  for _ in {1..69}; do $show "$text"; done > "$OUT/big.$language"
done

rm -rf "$OUT"/big.{learned,like}
corpus=(--source-lang de --target-lang en --train "$OUT/big")
measure $NMTFLEX preprocess "${corpus[@]}" --bpe 8000 --joint --out "$OUT/big.learned"
measure $NMTFLEX preprocess "${corpus[@]}" --like "$OUT/big.learned" --out "$OUT/big.like"
