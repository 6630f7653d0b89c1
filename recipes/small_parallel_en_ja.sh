#!/usr/bin/env bash
# small_parallel_enja, English to Japanese: global, local-p, flexible and memory attention over
# three seeds; flexible attention finetuned, with the threshold chosen on validation data.
#
#   DATA=path/to/small_parallel_enja recipes/small_parallel_en_ja.sh
#   DATA=... SEEDS=1 MECHANISMS=global recipes/small_parallel_en_ja.sh     # the speed benchmark
#   DATA=... SCALE=small recipes/small_parallel_en_ja.sh
#
# DATA holds train, dev and test, each .en and .ja (tokenised; .gz, .xz or .zst will do):
#   git clone https://github.com/odashi/small_parallel_enja
# Full: 50,000 pairs, one layer of 128 units each way, 256 decoder units, six epochs, seeds 1 to 3.
# Small: half the units, three epochs, seed 1.
source "$(dirname "$0")/common.sh"
need {train,dev,test}.{en,ja}
mechanisms=${MECHANISMS:-global local-p flexible memory}

if small; then
  seeds=${SEEDS:-1} length=3 under_length=2
  units=(--embedding-size 64 --encoder-size 64 --decoder-size 128)
  taus=0.2,0.5,1,inf
  sizes="small: 64 + 64 and 128 units, three epochs"
else
  seeds=${SEEDS:-1 2 3} length=6 under_length=4
  units=(--embedding-size 128 --encoder-size 128 --decoder-size 256)
  taus=0.05,0.1,0.2,0.25,0.3,0.35,0.4,0.5,0.6,0.7,1,1.38,2,inf
  sizes="full: 128 + 128 and 256 units, six epochs"
fi

prepare enja.prepared --source-lang en --target-lang ja \
  --train "$DATA/train" --valid "$DATA/dev" --test "$DATA/test" --min-frequency 2

for seed in $seeds; do
  for attention in $mechanisms; do
    case $attention in
      local-p) own=(--score additive --window 10) ;;
      flexible) own=(--score additive --sigma 1.5) ;;
      memory) own=(--K 32) ;;
      *) own=(--score additive) ;;
    esac
    # A training's last line gives target tokens a second, validations apart: on a quiet machine.
    train "enja-$attention-$seed" enja.prepared --attention "$attention" "${own[@]}" \
      --decoder luong "${units[@]}" --dropout 0.2 --batch-sentences 64 --lr 1e-3 --clip 3 \
      $(epochs $length) --seed "$seed"
    score "enja-$attention-$seed.test" "enja-$attention-$seed" --split test --beam 5 --ribes \
      --output "$OUT/enja-$attention-$seed.test.ja"
  done
done

# names WHAT: the scores of every seed.
names() {
  local seed
  for seed in $seeds; do echo "enja-$1-$seed.test"; done | xargs
}

rows=""
for attention in $mechanisms; do
  rows+="$attention | $(names "$attention") |"$'\n'
done

if [[ " $mechanisms " == *" flexible "* ]]; then
  for seed in $seeds; do
    # The paper's finetuning, and one under a threshold, for longer.
    finetune "enja-finetuned-$seed" "enja-flexible-$seed" --beta 0.1 $(epochs 1) --seed "$seed"
    finetune "enja-under-$seed" "enja-flexible-$seed" --beta 0.1 $(epochs $under_length) \
      --halve-from 2 --train-tau 0.4 --tau 0.4 --seed "$seed"
    # The smallest threshold that loses at most half a BLEU on validation data, against the run
    # before finetuning and without a threshold; where every one loses more, none.
    score "enja-flexible-$seed.valid" "enja-flexible-$seed" --split valid --beam 5
    baseline=$(value "enja-flexible-$seed.valid" bleu)
    for run in flexible finetuned under; do
      sweep "enja-$run-$seed.sweep" "enja-$run-$seed" --split valid --beam 5 --tau $taus \
        --within 0.5 --baseline "$baseline"
      tau=$(value "enja-$run-$seed.sweep" chosen.tau)
      score "enja-$run-tau-$seed.test" "enja-$run-$seed" --split test --beam 5 --ribes \
        --tau "${tau:-inf}" --output "$OUT/enja-$run-tau-$seed.test.ja"
    done
  done
  rows+="flexible, tau chosen | $(names flexible-tau) |"$'\n'
  rows+="finetuned, tau chosen | $(names finetuned-tau) |"$'\n'
  rows+="finetuned under tau 0.4, tau chosen | $(names under-tau) |"$'\n'
fi

table "small_parallel_enja, test data, beam 5, the corpus's words ($sizes; seeds $seeds)" << ROWS
$rows
No paper has figures for this corpus. Of several seeds: mean (smallest to greatest).
ROWS
