#!/usr/bin/env bash
# ASPEC, English to Japanese: global, local and flexible attention, finetuning, and the ablations of
# sigma and of the gate (000, table 1 and figure 4; 002, table 1).
#
#   DATA=path/to/ASPEC-JE KYTEA_MODEL=jp-0.4.2-utf8-1.mod recipes/aspec_en_ja.sh
#   DATA=... KYTEA_MODEL=... SCALE=small recipes/aspec_en_ja.sh
#
# DATA holds train-1.txt, train-2.txt, dev.txt and test.txt (.gz, .xz or .zst will do). ASPEC is
# licensed: apply at https://jipsti.jst.go.jp/aspec/.
# Full, as in 000: the first 1.5M pairs less those over 50 words, 80,000 and 40,000 words, 1000
# units, 600 before the softmax, batches of 32 (002: BATCH=64), Adam 1e-4 halved from epoch 4, six
# epochs, beam 20.
# Small: the first 5,000 pairs, 4,000 words a side, 128 units, 64 before the softmax, batches of 32,
# three epochs of 1e-3, beam 5. TRAIN, VALID and TEST name other files.
source "$(dirname "$0")/common.sh"
source "$RECIPES/aspec.sh"

if small; then
  corpus=(--max-pairs 5000 --source-vocabulary 4000 --target-vocabulary 4000) length=3
  taus=0.2,0.5,1.2,inf
  sizes="small: first 5,000 pairs, 4,000 words, 128 units, three epochs, beam $beam"
else
  corpus=(--max-pairs 1500000 --source-vocabulary 80000 --target-vocabulary 40000) length=6
  taus=0.05,0.1,0.2,0.3,0.4,0.5,0.7,1,1.2,1.38,2,3,inf
  sizes="full: first 1.5M pairs, 1000 units, six epochs, beam $beam"
fi

aspec aspec.prepared "${corpus[@]}" --max-length 50 \
  --source-tokenizer moses --target-tokenizer kytea --kytea-model "$KYTEA_MODEL"

# fit NAME OPTION...
fit() {
  train "aspec-$1" aspec.prepared "${@:2}" --score additive "${model[@]}" \
    --batch-sentences "${BATCH:-32}" --lr $rate --halve-from 4 --clip 3 $(epochs $length)
}

fit global --attention global
fit local --attention local-p --window 10
fit flexible --attention flexible --sigma 1.5
finetune aspec-finetuned aspec-flexible --beta 0.1 $(epochs 1)

wat aspec-global.test aspec-global
wat aspec-local.test aspec-local
for tau in inf 1.38 1.2; do wat "aspec-flexible.test-$tau" aspec-flexible --tau $tau; done
for tau in 1.38 1.2; do wat "aspec-finetuned.test-$tau" aspec-finetuned --tau $tau; done

# BLEU against CPS of the finetuned run (000, figure 4; 002, figure 2, which does not say of which
# run it is).
for split in valid test; do
  sweep "aspec-finetuned.sweep-$split" aspec-finetuned --split $split --beam $beam --tau $taus
done
step "$OUT/aspec.png" plot "$OUT"/aspec-finetuned.sweep-{valid,test}.csv --output "$OUT/aspec.png"

# Ablations, on validation data, where the papers chose: sigma, and the gate without the last word.
for sigma in 5 7.5 10; do fit "sigma$sigma" --attention flexible --sigma $sigma; done
fit no-feedback --attention flexible --sigma 1.5 --no-gate-feedback
for run in flexible sigma5 sigma7.5 sigma10 no-feedback; do
  score "aspec-$run.valid" "aspec-$run" --split valid --beam $beam --tau 1.38
done

table "ASPEC, English to Japanese, test data, WAT's procedure ($sizes)" << ROWS
global | aspec-global.test | cps=24.4 bleu=34.87 ribes=0.810
local-p, D = 10 | aspec-local.test | cps=18.4 bleu=34.52 ribes=0.809
flexible, tau inf | aspec-flexible.test-inf | cps=24.4 bleu=35.01 ribes=0.814
flexible, tau 1.38 (000) | aspec-flexible.test-1.38 | cps=16.9 bleu=34.87 ribes=0.811
finetuned, tau 1.38 (000) | aspec-finetuned.test-1.38 | cps=11.1 bleu=34.82 ribes=0.808
flexible, tau 1.2 (002) | aspec-flexible.test-1.2 | cps=16.4 bleu=34.90 ribes=0.812
finetuned, tau 1.2 (002) | aspec-finetuned.test-1.2 | cps=10.7 bleu=34.78 ribes=0.807
The curve of BLEU against CPS is $OUT/aspec.png, its BLEU that of the run's own KyTea words.
ROWS
table "Ablations, validation data, tau 1.38, BLEU of KyTea's words" << ROWS
sigma 1.5, gate with feedback | aspec-flexible.valid |
sigma 5 | aspec-sigma5.valid |
sigma 7.5 | aspec-sigma7.5.valid |
sigma 10 | aspec-sigma10.valid |
sigma 1.5, gate without feedback | aspec-no-feedback.valid |
The papers give no figures: they chose sigma 1.5, and found the gate better with feedback.
ROWS
