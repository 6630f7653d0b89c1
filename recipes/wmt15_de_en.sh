#!/usr/bin/env bash
# WMT15, German to English: global, local and flexible attention, finetuning; tokenised BLEU on
# newstest2015 (002, table 1).
#
#   DATA=path/to/wmt15 FETCH=yes recipes/wmt15_de_en.sh      # fetches some GB into DATA first
#   DATA=... SCALE=small recipes/wmt15_de_en.sh
#
# DATA holds the TRAIN corpora (4.5M pairs: Europarl v7, Common Crawl, News Commentary v10), VALID
# and TEST, each .de and .en (raw text; .gz, .xz or .zst will do). The paper does not name its
# validation data: newstest2013 here. Its preprocessing follows Li et al. (2014): Moses tokens here.
# Full, as in 002: 50,000 words a side, sentences of fewer than 50, LSTMs of 1000 units, batches of
# 64, Adam 1e-4 halved from epoch 4, six epochs. It does not say the rest: embeddings of 1000, 600
# before the softmax, clip 3 and beam 20 are those of 000.
# Small: the first 5,000 pairs, 5,000 words a side, 128 units, three epochs of 1e-3, beam 5.
source "$(dirname "$0")/common.sh"
source "$RECIPES/fetch.sh"
TRAIN=${TRAIN:-europarl-v7.de-en commoncrawl.de-en news-commentary-v10.de-en}
VALID=${VALID:-newstest2013}
TEST=${TEST:-newstest2015}
STATMT=${STATMT:-https://www.statmt.org}   # or a mirror

if [ "${FETCH:-}" = yes ]; then
  [ -n "${DATA:-}" ] || stop "set DATA to the folder to fetch into"
  # part FOLDER ARCHIVE NAME: a corpus, from its archive where it is not there yet.
  part() {
    local language
    for language in de en; do
      if [ -f "$DATA/$3.$language" ]; then continue; fi
      fetch "$STATMT/$1/$2" "$DATA/$2"
      unpack "$DATA/$2" "$3.$language" "$DATA/$3.$language"
    done
  }
  part wmt13 training-parallel-europarl-v7.tgz europarl-v7.de-en
  part wmt13 training-parallel-commoncrawl.tgz commoncrawl.de-en
  part wmt15 training-parallel-nc-v10.tgz news-commentary-v10.de-en
  # The numbers of lines are the published ones.
  for language in de en; do
    lines "$DATA/europarl-v7.de-en.$language" "${EUROPARL_LINES:-1920209}"
    lines "$DATA/commoncrawl.de-en.$language" "${COMMONCRAWL_LINES:-2399123}"
  done
  for set in wmt13:newstest2013 wmt15:newstest2015; do
    test_set "${set%:*}" de-en src "$DATA/${set#*:}.de"
    test_set "${set%:*}" de-en ref "$DATA/${set#*:}.en"
  done
fi
files=()
for name in $TRAIN "$VALID" "$TEST"; do files+=("$name".{de,en}); done
need "${files[@]}"

if small; then
  words=5000 pairs=5000 units=128 bottleneck=64 rate=1e-3 length=3 beam=5
  sizes="small: first 5,000 pairs, 5,000 words, 128 units, three epochs, beam 5"
else
  words=50000 pairs=0 units=1000 bottleneck=600 rate=1e-4 length=6 beam=20
  sizes="full: 4.5M pairs, 50,000 words, 1000 units, six epochs, beam 20"
fi

corpora=()
for name in $TRAIN; do corpora+=(--train "$DATA/$name"); done
prepare wmt15.prepared --source-lang de --target-lang en "${corpora[@]}" \
  --valid "$DATA/$VALID" --test "$DATA/$TEST" --max-pairs $pairs --max-length 49 \
  --source-tokenizer moses --target-tokenizer moses \
  --source-vocabulary $words --target-vocabulary $words

# fit NAME OPTION...
fit() {
  train "wmt15-$1" wmt15.prepared "${@:2}" --score additive --decoder bahdanau \
    --embedding-size $units --encoder-size $units --decoder-size $units --bottleneck $bottleneck \
    --dropout 0 --batch-sentences 64 --lr $rate --halve-from 4 --clip 3 $(epochs $length)
}

# moses FILE: FILE.tok, in Moses' tokens.
moses() { step --stdin "$1" --stdout "$1.tok" tokenize --tokenizer moses --lang en; }

# tokenised NAME RUN OPTION...: the run's scores, and BLEU of its output in Moses' tokens, unknown
# words UNK as in the paper: Moses would cut <unk> into three.
tokenised() {
  score "$1" "$2" --split test --beam $beam --unk UNK --output "$OUT/$1.en" "${@:3}"
  moses "$OUT/$1.en"
  step --stdout "$OUT/$1.tok.json" eval --hypothesis "$OUT/$1.en.tok" \
    --reference "$OUT/wmt15.reference.en.tok" --tokenize none --json
}

fit global --attention global
fit local --attention local-p --window 10
fit flexible --attention flexible --sigma 1.5
finetune wmt15-finetuned wmt15-flexible --beta 0.1 $(epochs 1)

# The reference as the run carries it, plain however DATA has it.
cp "$OUT/wmt15-global/raw/test.target.txt" "$OUT/wmt15.reference.en"
moses "$OUT/wmt15.reference.en"
tokenised wmt15-global.test wmt15-global
tokenised wmt15-local.test wmt15-local
for tau in inf 1.2; do tokenised "wmt15-flexible.test-$tau" wmt15-flexible --tau $tau; done
tokenised wmt15-finetuned.test-1.2 wmt15-finetuned --tau 1.2

table "WMT15, German to English, $TEST, tokenised BLEU ($sizes)" << ROWS
global | wmt15-global.test+wmt15-global.test.tok | cps=20.7 bleu=20.62
local-p, D = 10 | wmt15-local.test+wmt15-local.test.tok | cps=15.7 bleu=21.09
flexible, tau inf | wmt15-flexible.test-inf+wmt15-flexible.test-inf.tok | cps=20.7 bleu=21.31
flexible, tau 1.2 | wmt15-flexible.test-1.2+wmt15-flexible.test-1.2.tok | cps=7.8 bleu=21.11
finetuned, tau 1.2 | wmt15-finetuned.test-1.2+wmt15-finetuned.test-1.2.tok | cps=7.4 bleu=20.79
ROWS
