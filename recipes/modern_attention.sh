#!/usr/bin/env bash
# Cheap attention in a modern decoder: a transformer encoder and SSRU layers with global, local-p,
# flexible (finetuned, its threshold chosen on validation data) and memory attention. Global
# attention is trained from random weights; every mechanism, itself among them, begins with these.
#
#   DATA=path/to/iwslt14 recipes/modern_attention.sh
#   DATA=path/to/kftt CORPUS=kftt recipes/modern_attention.sh
#   DATA=... SCALE=small recipes/modern_attention.sh
#
#   CORPUS    iwslt14: German to English, tokenised and lower-cased, 8,000 joint BPE merges, the
#             first 1,500 of the 7,283 validation pairs;
#             kftt: English to Japanese, Moses and MeCab, 8,000 BPE merges a side, of the first
#             70,000 pairs those of at most 30 words
#   SEEDS     of the trainings (1)
#   LENGTH    epochs of the first training (iwslt14 10, kftt 8)
#   FURTHER   epochs of each mechanism (3)
#   MORE      other mechanisms to train, such as "abc rfa local-m monotonic mocha" (none)
#   ALIGN     eflomal-align, for guided attention (none)
#   ROUNDS    of the decoding benchmark of the first 1,000 test sentences (3)
#
# DATA holds the files that iwslt14_de_en.sh and kftt_en_ja.sh name.
# Full: 256 units, four encoder and two decoder layers of 4 heads and 512 feed-forward units. Small:
# the first 10,000 pairs, 64 units, three epochs and one for each mechanism.
source "$(dirname "$0")/common.sh"
CORPUS=${CORPUS:-iwslt14} SEEDS=${SEEDS:-1} ROUNDS=${ROUNDS:-3} MORE=${MORE:-}
pairs=0 # all
case $CORPUS in
  iwslt14)
    need {train,valid,test}.{de,en}
    head_of valid 1500 de en
    length=10 tie=all sides=("de --tokenizer none" "en --tokenizer none")
    text=(--source-lang de --target-lang en --valid "$OUT/valid-1500" --bpe 8000 --joint)
    ;;
  kftt)
    need {train,dev,test}.{en,ja}
    length=8 tie=target sides=("en --tokenizer moses --lang en" "ja --tokenizer mecab")
    text=(--source-lang en --target-lang ja --valid "$DATA/dev" --source-tokenizer moses
      --target-tokenizer mecab --bpe 8000 --max-length 30)
    pairs=70000
    ;;
  *) stop "CORPUS is iwslt14 or kftt, not $CORPUS" ;;
esac
if small; then
  units=64 length=3 further=1 taus=1,4,inf pairs=10000
  sizes="small: first 10,000 pairs, 64 units, 3 epochs and 1"
else
  units=256 length=${LENGTH:-$length} further=${FURTHER:-3}
  taus=0.5,1,1.38,2,3,4,6,8,16,inf
  sizes="full: 256 units, $length epochs and $further"
fi
name=modern-$CORPUS guided=()
if [ -n "$ALIGN" ]; then
  link_words $CORPUS "${sides[@]}"
  text+=(--guided-alignment "$OUT/$CORPUS.links") guided=(--guided-weight 0.5)
fi

prepare $name.prepared --train "$DATA/train" --test "$DATA/test" --max-pairs $pairs \
  "${text[@]}"

# names WHAT: the scores of every seed.
names() {
  local seed
  for seed in $SEEDS; do echo "$name-$1-$seed.test"; done | xargs
}

# fit RUN ATTENTION OPTION...: train for a seed.
fit() {
  train "$1" $name.prepared --attention "$2" "${@:3}" \
    --encoder transformer --encoder-layers 4 --encoder-heads 4 --encoder-ffn $((2 * units)) \
    --decoder ssru --decoder-layers 2 --decoder-heads 4 --decoder-ffn $((2 * units)) --pre-norm \
    --embedding-size $units --encoder-size $units --decoder-size $units --tie-embeddings $tie \
    --dropout 0.2 --label-smoothing 0.1 --batch-tokens 1024 --adam-beta2 0.98 --clip 1 \
    --schedule cosine ${guided[@]+"${guided[@]}"} --dtype $FAST --valid-beam 1 --seed "$seed"
}

for seed in $SEEDS; do
  fit "$name-first-$seed" global --lr 1e-3 --warmup 1000 $(epochs $length)
  score "$name-first-$seed.test" "$name-first-$seed" --split test --beam 5 --ribes
done
rows="global, the first training | $(names first) |"$'\n'
for attention in global local-p flexible memory $MORE; do
  for seed in $SEEDS; do
    run=$name-$attention-$seed
    fit "$run" $attention --init-from "$OUT/$name-first-$seed" $(onto $attention) \
      $(epochs $further)
    score "$run.test" "$run" --split test --beam 5 --ribes
  done
  rows+="$attention | $(names $attention) |"$'\n'
done

# on RUN BASE OPTION...: finetune for an epoch.
on() {
  finetune "$1" "$2" "${@:3}" --lr 3e-4 --schedule cosine --warmup 50 $(epochs 1) \
    ${guided[@]+"${guided[@]}"} --valid-beam 1 --seed "$seed"
}

for seed in $SEEDS; do
  on "$name-once-$seed" "$name-global-$seed" # global attention gets as many updates
  on "$name-more-$seed" "$name-once-$seed"
  on "$name-near-$seed" "$name-flexible-$seed" --beta 1 --train-tau 4 --tau 4
  on "$name-under-$seed" "$name-near-$seed" --beta 1 --train-tau 2 --tau 2
  score "$name-more-$seed.test" "$name-more-$seed" --split test --beam 5 --ribes
  score "$name-under-$seed.test" "$name-under-$seed" --split test --beam 5 --ribes
  # The smallest threshold that is at most half a BLEU below global attention on validation data.
  score "$name-more-$seed.valid" "$name-more-$seed" --split valid --beam 5
  sweep "$name-under-$seed.sweep" "$name-under-$seed" --split valid --beam 5 --tau $taus \
    --within 0.5 --baseline "$(value "$name-more-$seed.valid" bleu)"
  tau=$(value "$name-under-$seed.sweep" chosen.tau)
  score "$name-chosen-$seed.test" "$name-under-$seed" --split test --beam 5 --ribes \
    --tau "${tau:-inf}"
done
rows+="global, two more epochs | $(names more) |"$'\n'
rows+="flexible, finetuned, tau inf | $(names under) |"$'\n'
rows+="flexible, finetuned, tau chosen | $(names chosen) |"$'\n'

first=${SEEDS%% *}
tau=$(value "$name-under-$first.sweep" chosen.tau)
speeds=()
for what in global local-p memory under; do speeds+=("$OUT/$name-$what-$first"); done
step --stdout "$OUT/$name.speed.json" bench "${speeds[@]}" --split test --beam 5 \
  --sentences 1000 --repeats "$ROUNDS" --json --output "$OUT/$name.speed" --tau "${tau:-inf}"

table "Transformer + ssru, $CORPUS, test data, beam 5 ($sizes; seeds $SEEDS)" << ROWS
$rows
ROWS
"$PYTHON" "$RECIPES/speeds.py" "$OUT" $name.speed
