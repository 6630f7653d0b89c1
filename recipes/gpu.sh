#!/usr/bin/env bash
# What can only be seen on a GPU, in one go and under 40 minutes: tests, kernels against the
# reference, speed of training and decoding, and the copy task at its full size. Leaves one table.
#
#   recipes/gpu.sh
#   PARTS="kernels training" recipes/gpu.sh
#   DEVICE=cpu SCALE=small recipes/gpu.sh     # to try the recipe out, minutes
#
#   DEVICE    cuda, or a GPU as cuda:1
#   PARTS     of tests, kernels, training, decoding and copy; parts that are done are kept
#   UPDATES   measured updates of a training, after WARMUP (40) others
#   BEAMS     beam sizes of decoding (1, 5 and 20)
#   MINUTES   of the copy task's trainings together (12)
#
# Trainings: text drawn by Zipf's law (generate zipf), 40,000 words a side, 200,000 pairs; presets
# yardstick and base, in float32 and bfloat16. Decoding: models with random weights, so that all
# outputs are 25 words long, from sources of 25 (bench --synthetic). Copy task: sequences of up to
# 100 symbols, memory attention with K 32 and the sizes of the paper (001). No corpus is needed.
source "$(dirname "$0")/common.sh"
DEVICE=${DEVICE:-cuda} PARTS=${PARTS:-tests kernels training decoding copy} WARMUP=${WARMUP:-40}
MINUTES=${MINUTES:-12}
for part in $PARTS; do
  case $part in
    tests | kernels | training | decoding | copy) ;;
    *) stop "PARTS are of tests, kernels, training, decoding and copy, not $part" ;;
  esac
done
mkdir -p "$OUT"
if small; then
  pairs=2000 valid=100 types=500 updates=${UPDATES:-3} WARMUP=1 quick=(--quick) presets="tiny" every=1
  copies=(--embedding-size 32 --encoder-size 32 --decoder-size 32 --updates 4)
  length=10 words=500 repeats=1 BEAMS=${BEAMS-1 5} tests="tests/unit/ops/test_ssru_cuda.py"
else
  pairs=200000 valid=1000 types=40000 updates=${UPDATES:-200} quick=() presets="yardstick base"
  every=20
  copies=(--embedding-size 256 --encoder-size 256 --decoder-size 256 --dropout 0.2
    --encoder-layers 2 --decoder-layers 2 --updates 200000)
  length=100 words=20000 repeats=3 BEAMS=${BEAMS-1 5 20}
  tests=$(cd "$RECIPES/.." && echo tests/unit/ops/test_*cuda*.py)
fi
wants() { [[ " $PARTS " == *" $1 "* ]]; }

if wants tests; then
  # shellcheck disable=SC2086  # several files
  (cd "$RECIPES/.." && "$PYTHON" -m pytest -q -p no:cacheprovider -m "slow or not slow" $tests) > "$OUT/gpu.tests.log" 2>&1 ||
    echo "$RECIPE: tests failed, see $OUT/gpu.tests.log" >&2
fi
if wants kernels; then
  "$PYTHON" "$RECIPES/gpu_kernels.py" --device "$DEVICE" ${quick[@]+"${quick[@]}"} \
    > "$OUT/gpu.kernels.json" 2> "$OUT/gpu.kernels.log" ||
    echo "$RECIPE: kernels are wrong or failed, see $OUT/gpu.kernels.log" >&2
fi

total=$((WARMUP + updates)) runs=()
if wants training; then
  step "$OUT/gpu.zipf" generate zipf --types $types --train $pairs --valid $valid --seed 1 \
    --out "$OUT/gpu.zipf"
  prepare gpu.prepared --source-lang src --target-lang tgt --train "$OUT/gpu.zipf/train" \
    --valid "$OUT/gpu.zipf/valid" --source-vocabulary 20000 --target-vocabulary 20000
fi
for dtype in float32 bfloat16; do
  for preset in $presets; do
    # The presets of transformers tie all embeddings, which takes one vocabulary; this has two.
    tied=(--tie-embeddings target)
    [ $preset != yardstick ] || tied=()
    run=gpu-$preset-$dtype
    runs+=("$run")
    ! wants training || step "$OUT/$run" train "$OUT/gpu.prepared" --run "$OUT/$run" \
      --preset "$preset" ${tied[@]+"${tied[@]}"} --accumulate 1 --schedule constant --warmup 0 \
      --updates $total --validate-every $total --valid-beam 1 --log-every $every \
      --device "$DEVICE" --dtype $dtype
  done
  for beam in $BEAMS; do
    ! wants decoding || step --stdout "$OUT/gpu.decoding.$dtype.$beam.json" bench --synthetic \
      --backbones recurrent+luong,transformer+ssru,transformer+transformer --lengths 25 --steps 25 \
      --words $words --beam "$beam" --repeats $repeats --device "$DEVICE" --dtype $dtype --json
  done
done

if wants copy; then
  corpus=$OUT/gpu.copy
  step "$corpus" generate copy --max-length $length --out "$corpus"
  prepare gpu.copy.prepared --source-lang src --target-lang tgt --train "$corpus/train" \
    --valid "$corpus/valid" --test "$corpus/test" --max-length $length
  # As many updates as fit: a training that is stopped saves its state, and the same command resumes.
  for what in memory global; do
    options=(--attention global --score additive)
    [ $what = global ] || options=(--attention memory --K 32)
    timeout --signal=TERM "$((MINUTES * 30))" $NMTFLEX train "$OUT/gpu.copy.prepared" \
      --run "$OUT/gpu-copy-$what" "${options[@]}" --decoder luong "${copies[@]}" --lr 1e-4 \
      --batch-sentences 128 --clip 3 --validate-every 2000 --valid-beam 1 --device "$DEVICE" ||
      echo "$RECIPE: gpu-copy-$what stopped after $((MINUTES / 2)) minutes" >&2
  done
fi

"$PYTHON" "$RECIPES/gpu_table.py" "$OUT" "$WARMUP" "${runs[@]}" | tee "$OUT/gpu.md"
