#!/usr/bin/env bash
# Backbones side by side under global attention: a recurrent and a transformer encoder, and luong,
# ssru and transformer decoders, by BLEU, parameters, minutes and decoding speed.
#
#   DATA=path/to/small_parallel_enja recipes/backbones.sh
#   DATA=path/to/iwslt14 CORPUS=iwslt14 recipes/backbones.sh
#   DATA=... SCALE=small recipes/backbones.sh
#
#   CORPUS    enja: small_parallel_enja, English to Japanese, words seen at least twice;
#             iwslt14: German to English, tokenised and lower-cased, 8,000 joint BPE merges, the
#             first 1,500 of the 7,283 validation pairs
#   SEEDS     of the trainings (1)
#   LENGTH    epochs (enja 8, iwslt14 10)
#   ALIGN     eflomal-align, for guided attention (none)
#   ROUNDS    of the decoding benchmark of the first 1,000 test sentences (3)
#
# DATA holds the files that small_parallel_en_ja.sh and iwslt14_de_en.sh name.
# Full: 256 units, four transformer layers of 4 heads and 512 feed-forward units, two such SSRU or
# transformer layers in the decoder, or one LSTM layer (256 units a direction). Small: the first
# 10,000 pairs, 64 units, three epochs.
source "$(dirname "$0")/common.sh"
CORPUS=${CORPUS:-enja} SEEDS=${SEEDS:-1} ROUNDS=${ROUNDS:-3}
case $CORPUS in
  enja)
    need {train,dev,test}.{en,ja}
    length=8 tie=target dropout=0.3 batch=2048 rate=2e-3 warmup=500
    sides=("en --tokenizer none" "ja --tokenizer none")
    text=(--source-lang en --target-lang ja --valid "$DATA/dev" --min-frequency 2)
    ;;
  iwslt14)
    need {train,valid,test}.{de,en}
    head_of valid 1500 de en
    length=10 tie=all dropout=0.2 batch=1024 rate=1e-3 warmup=1000
    sides=("de --tokenizer none" "en --tokenizer none")
    text=(--source-lang de --target-lang en --valid "$OUT/valid-1500" --bpe 8000 --joint)
    ;;
  *) stop "CORPUS is enja or iwslt14, not $CORPUS" ;;
esac
if small; then
  units=64 length=3
  text+=(--max-pairs 10000)
  sizes="small: first 10,000 pairs, 64 units, three epochs"
else
  units=256 length=${LENGTH:-$length}
  sizes="full: 256 units, $length epochs"
fi
name=backbones-$CORPUS guided=()
if [ -n "$ALIGN" ]; then
  link_words $CORPUS "${sides[@]}"
  text+=(--guided-alignment "$OUT/$CORPUS.links") guided=(--guided-weight 0.5)
fi

prepare $name.prepared --train "$DATA/train" --test "$DATA/test" "${text[@]}"

transformer=(--encoder transformer --encoder-layers 4 --encoder-heads 4 --pre-norm
  --encoder-ffn $((2 * units)))
layers=(--decoder-layers 2 --decoder-heads 4 --decoder-ffn $((2 * units)))
backbones="recurrent-luong transformer-luong transformer-ssru transformer-transformer"
rows="" speeds=()
for backbone in $backbones; do
  encoder=("${transformer[@]}")
  case $backbone in
    recurrent-*) encoder=(--encoder recurrent) ;;
  esac
  decoder=(--decoder "${backbone#*-}")
  case $backbone in
    *-luong) decoder+=(--score general --lr 1e-3) ;;
    *) decoder+=("${layers[@]}" --lr $rate) ;;
  esac
  names=""
  for seed in $SEEDS; do
    run=$name-$backbone-$seed
    train "$run" $name.prepared --attention global "${encoder[@]}" "${decoder[@]}" \
      --embedding-size $units --encoder-size $units --decoder-size $units --tie-embeddings $tie \
      --dropout $dropout --label-smoothing 0.1 --batch-tokens $batch --adam-beta2 0.98 --clip 1 \
      --schedule cosine --warmup $warmup $(epochs $length) ${guided[@]+"${guided[@]}"} \
      --dtype $FAST --valid-beam 1 --seed "$seed"
    score "$run.test" "$run" --split test --beam 5 --ribes
    names+=" $run.test"
  done
  rows+="$backbone |$names |"$'\n'
  speeds+=("$OUT/$name-$backbone-${SEEDS%% *}")
done

for beam in 1 5; do
  step --stdout "$OUT/$name.beam$beam.json" bench "${speeds[@]}" --split test --beam $beam \
    --sentences 1000 --repeats "$ROUNDS" --json --output "$OUT/$name.beam$beam"
done

table "Backbones under global attention, $CORPUS, test data, beam 5 ($sizes; seeds $SEEDS)" << ROWS
$rows
ROWS
"$PYTHON" "$RECIPES/speeds.py" "$OUT" $name.beam1 $name.beam5
