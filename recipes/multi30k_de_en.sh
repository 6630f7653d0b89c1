#!/usr/bin/env bash
# Multi30k, German to English: a recurrent model and a transformer with an SSRU decoder; Moses tokens,
# joint BPE, cased BLEU on test2016.
#
#   DATA=path/to/multi30k recipes/multi30k_de_en.sh
#   DATA=... SCALE=small recipes/multi30k_de_en.sh
#
#   SEEDS   of the trainings (1)
#   LENGTH  epochs of the transformer (38)
#
# DATA holds train, val and test2016, each .de and .en (raw text; .gz, .xz or .zst will do):
# data/task1/raw of https://github.com/multi30k/dataset, test_2016_flickr as test2016.
# Full: 29,000 pairs, 8,000 merges. The recurrent model has 256 + 256 and 512 units and twelve epochs;
# the transformer is the preset small, with dropout 0.4.
# Small: the first 10,000 pairs, 4,000 merges, half the units, six epochs.
source "$(dirname "$0")/common.sh"
SEEDS=${SEEDS:-1}
need {train,val,test2016}.{de,en}

if small; then
  pairs=(--max-pairs 10000) merges=4000 half=128 length=6
  layers=(--embedding-size 128 --encoder-ffn 256 --decoder-ffn 256) transformer_length=6
  sizes="small: first 10,000 pairs, 4,000 merges, half the units, six epochs"
else
  pairs=() merges=8000 half=256 length=12
  layers=(--dropout 0.4) transformer_length=${LENGTH:-38}
  sizes="full: 29,000 pairs, 8,000 merges; twelve and $transformer_length epochs"
fi

prepare multi30k.prepared --source-lang de --target-lang en ${pairs[@]+"${pairs[@]}"} \
  --train "$DATA/train" --valid "$DATA/val" --test "$DATA/test2016" \
  --source-tokenizer moses --target-tokenizer moses --bpe $merges --joint

# names WHAT BEAM: the scores of every seed.
names() {
  local seed
  for seed in $SEEDS; do echo "multi30k-$1-$seed.beam$2"; done | xargs
}

# Dropout, label smoothing and shared embeddings: 29,000 pairs are few.
for seed in $SEEDS; do
  train "multi30k-recurrent-$seed" multi30k.prepared --attention global --decoder luong \
    --score general --embedding-size $half --encoder-size $half --decoder-size $((2 * half)) \
    --bottleneck $half --tie-embeddings all --dropout 0.3 --output-dropout 0.3 \
    --label-smoothing 0.1 --batch-tokens 2048 $(epochs $length) --plateau 1 --dtype $FAST \
    --seed "$seed"
  train "multi30k-transformer-$seed" multi30k.prepared --preset small \
    ${layers[@]+"${layers[@]}"} $(epochs "$transformer_length") --dtype $FAST --valid-beam 1 \
    --seed "$seed"
  for run in multi30k-recurrent-$seed multi30k-transformer-$seed; do
    for beam in 1 5; do
      score "$run.beam$beam" "$run" --split test --beam $beam
    done
  done
done

table "Multi30k, test2016, cased and detokenised, 13a ($sizes; seeds $SEEDS)" << ROWS
recurrent, beam 1 | $(names recurrent 1) |
recurrent, beam 5 | $(names recurrent 5) |
transformer + ssru, beam 1 | $(names transformer 1) |
transformer + ssru, beam 5 | $(names transformer 5) |
No paper has figures for this corpus. pytorch-seq2seq's GRU with Bahdanau's attention has 28.30, in
lower-cased words of spaCy: not the same measure.
ROWS
