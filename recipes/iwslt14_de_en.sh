#!/usr/bin/env bash
# IWSLT14, German to English: global, flexible and memory attention at the size of JoeyNMT's
# published LSTM, in lower-cased Moses words.
#
#   DATA=path/to/iwslt14 recipes/iwslt14_de_en.sh
#   DATA=... SCALE=small recipes/iwslt14_de_en.sh
#
# DATA holds train, valid and test, each .de and .en (.gz, .xz or .zst will do): tokenised and
# lower-cased, as fairseq's examples/translation/prepare-iwslt14.sh makes them in tmp/.
# Full, much as JoeyNMT: words seen three times, sentences of at most 50, 256 units everywhere,
# dropout 0.2, Adam 1e-3, batches of 64, the rate halved on a plateau, 20 epochs.
# Small: of the first 15,000 pairs those of at most 25 words, 128 units, batches of 32, six epochs.
source "$(dirname "$0")/common.sh"
need {train,valid,test}.{de,en}

if small; then
  # The validation data is nearly as large as what is trained on, and takes as long.
  pairs=(--max-pairs 15000) longest=25 units=128 batch=32 length=6 often=(--validate-every 700)
  sizes="small: 15,000 pairs less long ones, 128 units, six epochs, seed 1"
else
  pairs=() longest=50 units=256 batch=64 length=20 often=()
  sizes="full: all pairs of at most 50 words, 256 units, up to 20 epochs, seed 1"
fi

prepare iwslt14.prepared --source-lang de --target-lang en ${pairs[@]+"${pairs[@]}"} \
  --train "$DATA/train" --valid "$DATA/valid" --test "$DATA/test" \
  --min-frequency 3 --max-length $longest

# fit NAME OPTION...
fit() {
  train "iwslt14-$1" iwslt14.prepared "${@:2}" --decoder luong \
    --embedding-size $units --encoder-size $units --decoder-size $units --dropout 0.2 \
    --batch-sentences $batch --lr 1e-3 --clip 1 $(epochs $length) ${often[@]+"${often[@]}"} \
    --plateau 2 --valid-beam 1
}

fit global --attention global --score general
fit flexible --attention flexible --score general --sigma 1.5
fit memory32 --attention memory --K 32
fit memory64 --attention memory --K 64
finetune iwslt14-finetuned iwslt14-flexible --beta 0.1 $(epochs 1) --valid-beam 1

for run in global flexible memory32 memory64 finetuned; do
  score "iwslt14-$run.test" "iwslt14-$run" --split test --beam 5
done
for run in flexible finetuned; do
  score "iwslt14-$run.test-auto" "iwslt14-$run" --split test --beam 5 --tau auto
done

table "IWSLT14, test data, beam 5, BLEU of lower-cased words ($sizes)" << ROWS
global | iwslt14-global.test |
flexible, tau inf | iwslt14-flexible.test |
flexible, tau auto | iwslt14-flexible.test-auto |
finetuned, tau inf | iwslt14-finetuned.test |
finetuned, tau auto | iwslt14-finetuned.test-auto |
memory, K 32 | iwslt14-memory32.test |
memory, K 64 | iwslt14-memory64.test |
No paper has figures for this corpus. JoeyNMT's LSTM of this size has 27.03 (Luong's attention, beam
10, all 160,239 pairs).
ROWS
