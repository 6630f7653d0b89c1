#!/usr/bin/env bash
# Paragraphs: global, flexible and memory attention, trained by modern_attention.sh, learn from samples
# of up to 15 sentences, and translate the test data in paragraphs of ten and sentence by sentence.
#
#   DATA=path/to/iwslt14 recipes/paragraphs.sh         # after modern_attention.sh
#   DATA=... SCALE=small recipes/paragraphs.sh
#
#   ATTENTIONS   of modern_attention.sh (global flexible memory)
#   ALIGN        as given to modern_attention.sh: guides attention in joined samples, too
#   LENGTH       epochs (3)
#   ROUNDS       of the decoding benchmark of the first 200 paragraphs (3)
#
# DATA holds the files that iwslt14_de_en.sh names; its test data is in order, its training data is
# not, so samples join any sentences. Flexible attention is finetuned on them (beta 1, tau 4).
# Small: the same on the first 10,000 pairs.
source "$(dirname "$0")/common.sh"
ATTENTIONS=${ATTENTIONS:-global flexible memory} LENGTH=${LENGTH:-3} ROUNDS=${ROUNDS:-3}
base=modern-iwslt14
need {train,valid,test}.{de,en}
head_of valid 1500 de en
if small; then
  pairs=10000 sizes="small: first 10,000 pairs, $LENGTH epochs"
else
  pairs=0 sizes="full: 41,745 pairs, $LENGTH epochs"
fi

# joined FILE COPY: each ten lines become one.
joined() { "$PYTHON" "$RECIPES/corpus.py" join "$1" 10 "$2"; }

for language in de en; do
  joined "$DATA/test.$language" "$OUT/paragraphs.$language"
  "$PYTHON" "$RECIPES/corpus.py" head "$DATA/test.$language" 1000000000 "$OUT/sentences.$language"
done
joining=(--concat 15 --concat-order random) guided=()
if [ -n "$ALIGN" ]; then
  joining+=(--guided-alignment "$OUT/train.links") guided=(--guided-weight 0.5)
fi
prepare paragraphs.prepared --like "$OUT/$base.prepared" --source-lang de --target-lang en \
  --train "$DATA/train" --valid "$OUT/valid-1500" --test "$OUT/paragraphs" --max-pairs $pairs \
  "${joining[@]}"

# by_sentence NAME RUN: scores of sentences translated one by one, then joined.
by_sentence() {
  step --stdin "$OUT/sentences.de" --stdout "$OUT/$1.sentences.en" translate "$OUT/$2" --beam 5
  joined "$OUT/$1.sentences.en" "$OUT/$1.joined.en"
  step --stdout "$OUT/$1.json" eval --hypothesis "$OUT/$1.joined.en" \
    --reference "$OUT/paragraphs.en" --tokenize none --ribes --json
}

rows="" runs=()
for attention in $ATTENTIONS; do
  own=()
  [ "$attention" != flexible ] || own=(--beta 1 --train-tau 4 --tau 4)
  run=paragraphs-$attention
  finetune $run $base-$attention-1 --data "$OUT/paragraphs.prepared" --lr 3e-4 --schedule cosine \
    --warmup 100 $(epochs $LENGTH) --valid-beam 1 ${guided[@]+"${guided[@]}"} ${own[@]+"${own[@]}"}
  by_sentence $run.one $run
  score $run.ten $run --split test --beam 5 --ribes
  rows+="$attention, sentence by sentence | $run.one |"$'\n'
  rows+="$attention, ten at once | $run.ten |"$'\n'
  if [ "$attention" = flexible ]; then
    score $run.four $run --split test --beam 5 --ribes --tau 4
    rows+="$attention, ten at once, tau 4 | $run.four |"$'\n'
  fi
  runs+=("$OUT/$run")
done
step --stdout "$OUT/paragraphs.speed.json" bench "${runs[@]}" --split test --beam 5 --sentences 200 \
  --repeats "$ROUNDS" --json --output "$OUT/paragraphs.speed" --tau 4

table "Paragraphs of ten sentences, IWSLT14, test data, beam 5 ($sizes)" << ROWS
$rows
ROWS
"$PYTHON" "$RECIPES/speeds.py" "$OUT" paragraphs.speed
