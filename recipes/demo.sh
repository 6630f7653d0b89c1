#!/usr/bin/env bash
# From raw text to scored translations on the toy corpus: English into Japanese, from subject-verb-
# object to subject-object-verb, with relative clauses that move across the sentence.
#
#     bash recipes/demo.sh [FOLDER]      (`make demo` does, with FOLDER demo)
#
# Every run starts afresh: corpus, prepared folder and run of the last one are deleted.
set -euo pipefail

folder=${1:-demo}
corpus=$folder/corpus prepared=$folder/prepared run=$folder/run
if [ -d "$folder" ] && [ ! -e "$folder/.nmtflex-demo" ]; then
  echo "demo.sh: $folder is there already and no demo made it; name another folder" >&2
  exit 1
fi
rm -rf "$corpus" "$prepared" "$run"
mkdir -p "$folder"
touch "$folder/.nmtflex-demo"

step() { printf '\n\033[1m== %s\033[0m\n' "$*" >&2; }

step "Generate: 20,000 sentence pairs from a small grammar"
nmtflex generate toy --out "$corpus"

step "Preprocess: vocabularies and ids"
nmtflex preprocess --source-lang en --target-lang ja --out "$prepared" \
  --train "$corpus/train" --valid "$corpus/valid" --test "$corpus/test"

step "Train: global attention"
nmtflex train "$prepared" --run "$run" --attention global --embedding-size 128 \
  --encoder-size 128 --decoder-size 256 --batch-sentences 32 --epochs 5

step "Translate: held-out sentences"
head -n 5 "$corpus/test.en" > "$folder/sample.en"
head -n 5 "$corpus/test.ja" > "$folder/sample.ja"
nmtflex translate "$run" < "$folder/sample.en" > "$folder/sample.out"
paste "$folder/sample.en" "$folder/sample.out" "$folder/sample.ja" |
  while IFS=$'\t' read -r source output reference; do
    printf 'source     %s\noutput     %s\nreference  %s\n\n' "$source" "$output" "$reference"
  done

step "Evaluate: the whole test set"
nmtflex eval "$run" --split test --beam 5
