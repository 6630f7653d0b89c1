#!/usr/bin/env bash
# fairseq's Transformer beside the transformer of multi30k_de_en.sh, which must have run before into
# the same OUT: the same subwords, sizes, dropout, optimizer and schedule, scored in the same way.
#
#   FAIRSEQ=~/fairseq/bin/python recipes/multi30k_fairseq.sh
#
#   LENGTH    updates, over which the rate falls to 0 (3300); choose what fits into MINUTES
#   MINUTES   after which the training ends in any case (60)
#   SEEDS     of the trainings (1)
#   THREADS   of PyTorch (2)
source "$(dirname "$0")/common.sh"
FAIRSEQ=${FAIRSEQ:-$PYTHON} LENGTH=${LENGTH:-3300} MINUTES=${MINUTES:-60} SEEDS=${SEEDS:-1}
# A PyTorch newer than fairseq reads its checkpoints, which hold more than tensors.
export OMP_NUM_THREADS=${THREADS:-2} TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
prepared=$OUT/multi30k.prepared here=$OUT/multi30k-fairseq
[ -d "$prepared" ] || stop "$prepared is missing; run multi30k_de_en.sh first"
"$FAIRSEQ" -c 'import fairseq' 2> /dev/null || stop "$FAIRSEQ has no fairseq; set FAIRSEQ"

rm -rf "$here"
mkdir -p "$here"
"$PYTHON" "$RECIPES/prepared_text.py" "$prepared" "$here/text"
"$FAIRSEQ" -m fairseq_cli.preprocess --source-lang de --target-lang en \
  --trainpref "$here/text/train" --validpref "$here/text/valid" --testpref "$here/text/test" \
  --destdir "$here/data" --srcdict "$here/text/dict.txt" --joined-dictionary --padding-factor 1 \
  > "$here/preprocess.log" 2>&1 || stop "fairseq's preprocess failed, see $here/preprocess.log"

# The preset small, with masked self-attention in the decoder: fairseq has no SSRU.
sizes=()
for side in encoder decoder; do
  sizes+=(--$side-embed-dim 256 --$side-ffn-embed-dim 512 --$side-attention-heads 4
    --$side-normalize-before)
done
hours=$(awk "BEGIN { print $MINUTES / 60 }")
for seed in $SEEDS; do
  run=$here/$seed
  SECONDS=0
  "$FAIRSEQ" -m fairseq_cli.train "$here/data" --save-dir "$run" --cpu --task translation \
    --arch transformer "${sizes[@]}" --encoder-layers 4 --decoder-layers 2 --share-all-embeddings \
    --dropout 0.3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas "(0.9, 0.98)" --clip-norm 1 --lr 2e-3 --lr-scheduler cosine \
    --warmup-updates "$((LENGTH > 1000 ? 500 : LENGTH / 2))" --max-update "$LENGTH" --stop-time-hours "$hours" \
    --max-tokens 2048 --required-batch-size-multiple 1 --no-epoch-checkpoints --num-workers 0 \
    --seed "$seed" --log-format json --log-interval 100 > "$run.log" 2>&1 ||
    stop "fairseq's training failed, see $run.log"
  echo "$RECIPE: seed $seed: $((SECONDS / 60)) minutes with validation" >&2
  for best in best last; do
    "$FAIRSEQ" -m fairseq_cli.generate "$here/data" --path "$run/checkpoint_$best.pt" --cpu \
      --task translation --gen-subset test --beam 5 --batch-size 64 > "$run.$best.generated" \
      2> "$run.$best.log" || stop "fairseq's generate failed, see $run.$best.log"
    # H-NUMBER, score, subwords; in the order of the test set.
    sed -n 's/^H-//p' "$run.$best.generated" | sort -n | cut -f 3 | sed 's/@@ //g' |
      $NMTFLEX detokenize --tokenizer moses --lang en > "$run.$best.en"
    $NMTFLEX eval --hypothesis "$run.$best.en" --reference "$prepared/raw/test.target.txt" --json \
      > "$OUT/multi30k-fairseq-$seed.$best.json"
  done
done

# names WHICH: the scores of every seed.
names() {
  local seed
  for seed in $SEEDS; do echo "multi30k-fairseq-$seed.$1"; done | xargs
}

table "fairseq's Transformer, Multi30k, test2016, beam 5 ($LENGTH updates, seeds $SEEDS)" << ROWS
least validation loss | $(names best) |
last update | $(names last) |
ROWS
