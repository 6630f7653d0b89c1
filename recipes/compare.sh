#!/usr/bin/env bash
# All mechanisms side by side, with nmtflex compare: BLEU, chrF and RIBES with intervals, CPS,
# microseconds a target token, bytes a sentence; a figure of BLEU against computations and time.
#
#   recipes/compare.sh                                             # the copy task
#   DATA=path/to/small_parallel_enja CORPUS=enja recipes/compare.sh
#   DATA=path/to/small_parallel_enja CORPUS=enja MODELS=backbones recipes/compare.sh
#   DATA=path/to/kftt CORPUS=kftt MODELS=luong recipes/compare.sh
#   DATA=path/to/kftt CORPUS=kftt ALIGN=eflomal-align recipes/compare.sh
#   DATA=path/to/iwslt14 CORPUS=iwslt14 SCALE=small recipes/compare.sh
#
#   CORPUS    copy: sequences of up to 50 of 20 symbols, made by the program;
#             enja: small_parallel_enja, English to Japanese, words seen at least twice;
#             kftt: English to Japanese, Moses and MeCab, 8,000 BPE merges a side, of the first
#             100,000 pairs those of at most 22 words;
#             iwslt14: German to English, tokenised and lower-cased, 8,000 joint BPE merges
#   MODELS    ssru: SSRU layers, under a transformer encoder; luong: LSTMs;
#             backbones (enja alone): encoders and decoders under global attention, and the
#             mechanisms of the papers in SSRU layers under a transformer encoder
#   JOBS      models that are trained at once, each with an equal part of the cores (1)
#   ALIGN     eflomal-align: guides the first training of kftt's SSRU layers, which needs it
#
# compare/CORPUS-MODELS.toml has the sizes, and the entries or the name of the file that has them;
# copy it to change them. DATA holds the files that small_parallel_en_ja.sh, kftt_en_ja.sh and
# iwslt14_de_en.sh name. Small: the first 10,000 pairs, 200 updates a training, which shows that all
# works and not what is better.
source "$(dirname "$0")/common.sh"
CORPUS=${CORPUS:-copy} MODELS=${MODELS:-ssru}
file=$RECIPES/compare/$CORPUS-$MODELS.toml
case $CORPUS-$MODELS in
  *-ssru | *-luong | enja-backbones) ;;
  *) stop "MODELS is ssru, luong or, of the corpus enja, backbones; not $MODELS (CORPUS=$CORPUS)" ;;
esac
pairs=0 prepared=compare-$CORPUS.prepared # all pairs
case $CORPUS in
  copy)
    step "$OUT/copy50" generate copy --max-length 50 --out "$OUT/copy50"
    DATA=$OUT/copy50
    text=(--source-lang src --target-lang tgt --valid "$DATA/valid" --max-length 50)
    ;;
  enja)
    need {train,dev,test}.{en,ja}
    text=(--source-lang en --target-lang ja --valid "$DATA/dev" --min-frequency 2)
    ;;
  kftt)
    need {train,dev,test}.{en,ja}
    text=(--source-lang en --target-lang ja --valid "$DATA/dev" --source-tokenizer moses
      --target-tokenizer mecab --bpe 8000 --max-length 22)
    pairs=100000
    if [ $MODELS = ssru ]; then
      [ -n "$ALIGN" ] || stop "CORPUS=kftt MODELS=ssru needs ALIGN=eflomal-align (pip install eflomal)"
      link_words kftt "en --tokenizer moses --lang en" "ja --tokenizer mecab"
      text+=(--guided-alignment "$OUT/kftt.links") prepared=compare-$CORPUS-guided.prepared
    fi
    ;;
  iwslt14)
    need {train,valid,test}.{de,en}
    text=(--source-lang de --target-lang en --valid "$DATA/valid" --bpe 8000 --joint)
    ;;
  *) stop "CORPUS is copy, enja, kftt or iwslt14, not $CORPUS" ;;
esac
if small; then
  pairs=10000 UPDATES=${UPDATES:-200}
fi

prepare $prepared --train "$DATA/train" --test "$DATA/test" --max-pairs $pairs "${text[@]}"
# It resumes by itself.
$NMTFLEX compare "$file" --data "$OUT/$prepared" \
  --out "$OUT/compare-$CORPUS-$MODELS" ${UPDATES:+--updates "$UPDATES"} \
  ${JOBS:+--jobs "$JOBS"}
