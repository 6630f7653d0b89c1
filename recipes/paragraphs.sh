#!/usr/bin/env bash
# Paragraphs: the model with global attention that modern_attention.sh trained on sentences learns
# from samples of up to 15 sentences, with positions that count from a random number and an encoder
# whose tokens attend to 32 on each side. Global, flexible and memory attention begin with its
# weights, and translate the test data sentence by sentence, in paragraphs of ten, and documents of
# 84 five and ten at a time. Then these models learn from samples of up to 100 sentences and
# translate whole documents, and decoding is timed on 64 sources of some 400 tokens and 16 of some
# 2,000.
#
#   DATA=path/to/iwslt14 recipes/paragraphs.sh         # after modern_attention.sh
#   DATA=... SCALE=small recipes/paragraphs.sh
#
#   ATTENTIONS   of global, local-p, flexible, memory and abc (global flexible memory)
#   ALIGN        as given to modern_attention.sh: guides attention in joined samples, too
#   LENGTH       epochs of the first training on paragraphs, with global attention (5)
#   FURTHER      epochs of each attention (2)
#   ROUNDS       of the decoding benchmarks (3)
#
# DATA holds the files that iwslt14_de_en.sh names; its test data is in order, its training data is
# not, so samples join any sentences. Flexible attention skips under tau 8, without finetuning.
# Documents take 600 updates more; those of flexible attention take half an hour. Small: the first
# 10,000 pairs.
source "$(dirname "$0")/common.sh"
ATTENTIONS=${ATTENTIONS:-global flexible memory} ROUNDS=${ROUNDS:-3}
LENGTH=${LENGTH:-5} FURTHER=${FURTHER:-2}
base=modern-iwslt14
need {train,valid,test}.{de,en}
head_of valid 1500 de en
if small; then
  pairs=10000 sizes="small: first 10,000 pairs, $LENGTH epochs and $FURTHER"
else
  pairs=0 sizes="full: 41,745 pairs, $LENGTH epochs and $FURTHER"
fi

# joined FILE LINES COPY: each so many lines become one.
joined() { "$PYTHON" "$RECIPES/corpus.py" join "$@"; }

for language in de en; do
  joined "$DATA/test.$language" 10 "$OUT/paragraphs.$language"
  joined "$OUT/valid-1500.$language" 10 "$OUT/tens.$language"
  joined "$OUT/valid-1500.$language" 17 "$OUT/pages.$language"
  joined "$DATA/test.$language" 84 "$OUT/documents.$language"
  "$PYTHON" "$RECIPES/corpus.py" head "$DATA/test.$language" 1000000000 "$OUT/sentences.$language"
done
links=() guided=()
if [ -n "$ALIGN" ]; then
  links=(--guided-alignment "$OUT/iwslt14.links") guided=(--guided-weight 0.5)
fi

# samples NAME VALID TEST OPTION...: prepare the corpus with samples of several sentences.
samples() {
  prepare $1 --like "$OUT/$base.prepared" --source-lang de --target-lang en --train "$DATA/train" \
    --valid "$OUT/$2" --test "$OUT/$3" --max-pairs $pairs --concat-order random "${@:4}" \
    ${links[@]+"${links[@]}"}
}
samples paragraphs.prepared tens paragraphs --concat 15
samples documents.prepared pages documents --concat 100 --concat-length 2000

# translation NAME SOURCE OPTION...: of $OUT/SOURCE.de, as $OUT/NAME.en.
translation() { step --stdin "$OUT/$2.de" --stdout "$OUT/$1.en" translate "${@:3}" --beam 5; }

# against NAME REFERENCE: the scores of $OUT/NAME.en.
against() {
  step --stdout "$OUT/$1.json" eval --hypothesis "$OUT/$1.en" --reference "$OUT/$2.en" \
    --tokenize none --ribes --json
}

# rows_of LABEL RUN OPTION...: lines of the tables, for all ways to translate.
rows_of() {
  local name=$2${3+.limited} run=("$OUT/$2" --no-repeat-ngram 6 "${@:3}")
  translation $name.sentences sentences "${run[@]}"
  joined "$OUT/$name.sentences.en" 10 "$OUT/$name.one.en"
  joined "$OUT/$name.sentences.en" 84 "$OUT/$name.each.en"
  against $name.one paragraphs
  against $name.each documents
  score $name.ten $2 --split test --beam 5 --no-repeat-ngram 6 --ribes "${@:3}"
  translation $name.tens documents "${run[@]}" --split sentences --join 10
  against $name.tens documents
  translation $name.fives documents "${run[@]}" --split sentences --join 10 --max-source-length 142
  against $name.fives documents
  rows+="$1, sentence by sentence | $name.one |"$'\n'
  rows+="$1, ten at once | $name.ten |"$'\n'
  whole+="$1, sentence by sentence | $name.each |"$'\n'
  whole+="$1, five at a time | $name.fives |"$'\n'
  whole+="$1, ten at a time | $name.tens |"$'\n'
}

# fit RUN BASE ATTENTION OPTION...: train with the weights of BASE.
fit() {
  train $1 paragraphs.prepared --config "$OUT/$base-first-1/config.json" --init-from "$OUT/$2" \
    --position-shift 2000 --encoder-window 32 --attention $3 "${@:4}"
}

rows="" whole="" documents=() warmup=50
[ -z "$UPDATES" ] || warmup=0
fit paragraphs-first $base-first-1 global --lr 1e-3 --warmup 200 $(epochs $LENGTH)
rows_of "global, the first training" paragraphs-first
for attention in $ATTENTIONS; do
  run=paragraphs-$attention
  fit $run paragraphs-first $attention $(onto $attention) $(epochs $FURTHER)
  rows_of $attention $run
  [ $attention != flexible ] || rows_of "flexible, tau 8" $run --tau 8
  finetune documents-$attention $run --data "$OUT/documents.prepared" --lr 3e-4 \
    --schedule cosine --warmup $warmup --updates ${UPDATES:-600} --valid-beam 1 \
    ${guided[@]+"${guided[@]}"}
  documents+=("$OUT/documents-$attention")
  limit=()
  [ $attention != flexible ] || limit=(--tau 8)
  score documents-$attention.whole documents-$attention --split test --beam 5 \
    --no-repeat-ngram 6 --ribes ${limit[@]+"${limit[@]}"}
  whole+="$attention, trained on documents, whole | documents-$attention.whole |"$'\n'
done

# time_of NAME SPLIT LINES: decoding of the first long sources of a split.
time_of() {
  step --stdout "$OUT/$1.speed.json" bench "${documents[@]}" --split $2 --sentences $3 --beam 5 \
    --repeats "$ROUNDS" --json --output "$OUT/$1.speed" --tau 8
}
time_of pages valid 64
time_of documents test 16

table "Paragraphs of ten sentences, IWSLT14, test data, beam 5 ($sizes)" << ROWS
$rows
ROWS
table "Documents of 84 sentences, IWSLT14, test data, beam 5" << ROWS
$whole
ROWS
"$PYTHON" "$RECIPES/speeds.py" "$OUT" pages.speed documents.speed
