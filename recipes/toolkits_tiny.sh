# Sourced by benchmark_toolkits.sh for SIZE=tiny: how each toolkit is prepared, trained, counted.
#
# Multi30k, German to English, Moses tokens and 8,000 joint merges: all read the same subwords with
# the same vocabulary (prepared_text.py). Transformer encoder of 6 layers and decoder of 2, 256
# units, 1536 in feed-forward layers, 8 heads, ReLU, norms after the sublayers, one embedding for
# both languages and the output; dropout 0.1, label smoothing 0.1, Adam 3e-4, clip 1, float32 except
# for nmtflex-bfloat16. nmtflex and Marian have SSRUs in the decoder, nmtflex-transformer and fairseq
# self-attention.
# Batches hold up to TOKENS tokens of the longer side, padding included; Marian counts source words
# without padding. The table has the target tokens of an update. With several threads Marian
# computes a part of each batch on each.
TOKENS=${TOKENS:-2048}
subwords=$here/subwords

# Every toolkit reads what nmtflex prepared. nmtflex validates after the last update, which would take
# longer than the training: a model that has learnt so little makes the longest translations.
head -n 10 "$text/val.de" > "$text/few.de"
head -n 10 "$text/val.en" > "$text/few.en"
$NMTFLEX preprocess --out "$here/nmtflex" --source-lang de --target-lang en \
  --train "$text/train" --valid "$text/few" --test "$text/test2016" \
  --source-tokenizer moses --target-tokenizer moses --bpe 8000 --joint > "$here/prepare.log" 2>&1 ||
  stop "preprocess failed, see $here/prepare.log"
"$PYTHON" "$RECIPES/prepared_text.py" "$here/nmtflex" "$subwords" ||
  stop "$here/nmtflex cannot be read"

# train_tiny RUN DECODER NUMBER_FORMAT
train_tiny() {
  $NMTFLEX train "$here/nmtflex" --run "$1" --attention global --embedding-size 256 \
    --encoder transformer --encoder-layers 6 --encoder-size 256 --encoder-ffn 1536 \
    --encoder-heads 8 --decoder "$2" --decoder-layers 2 --decoder-size 256 --decoder-ffn 1536 \
    --decoder-heads 8 --tie-embeddings all --dropout 0.1 --label-smoothing 0.1 --lr 3e-4 --clip 1 \
    --batch-tokens "$TOKENS" --updates $total --validate-every $total --valid-beam 1 \
    --log-every "$EVERY" --device cpu --dtype "$3" --threads "$THREADS"
}
train_nmtflex() { train_tiny "$1" ssru float32; }
count_nmtflex() {
  "$PYTHON" "$RECIPES/parameters.py" "$1/checkpoints/"update-*/weights.safetensors
}
train_nmtflex-bfloat16() { train_tiny "$1" ssru bfloat16; }
train_nmtflex-transformer() { train_tiny "$1" transformer float32; }

prepare_fairseq() {
  "$fairseq" -m fairseq_cli.preprocess --source-lang de --target-lang en \
    --trainpref "$subwords/train" --validpref "$subwords/valid" --testpref "$subwords/test" \
    --destdir "$here/fairseq" --srcdict "$subwords/dict.txt" --joined-dictionary --padding-factor 1
}
train_fairseq() {
  "$fairseq" -m fairseq_cli.train "$here/fairseq" --save-dir "$1" --cpu --task translation \
    --arch transformer --encoder-layers 6 --encoder-embed-dim 256 --encoder-ffn-embed-dim 1536 \
    --encoder-attention-heads 8 --decoder-layers 2 --decoder-embed-dim 256 \
    --decoder-ffn-embed-dim 1536 --decoder-attention-heads 8 --share-all-embeddings --dropout 0.1 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 3e-4 \
    --clip-norm 1 --max-tokens "$TOKENS" --required-batch-size-multiple 1 --max-update $total \
    --disable-validation --num-workers 0 --log-format json --log-interval "$EVERY"
}
count_fairseq() { "$fairseq" "$RECIPES/parameters.py" "$1/checkpoint_last.pt"; }

pymarian() { "$marian" -c 'import pymarian; pymarian.main()' "$@"; }
prepare_marian() { "$marian" -c 'import pymarian'; }
train_marian() {
  mkdir -p "$1"
  pymarian train --type transformer --model "$1/model.npz" \
    --train-sets "$subwords/train.de" "$subwords/train.en" \
    --vocabs "$subwords/vocabulary.yml" "$subwords/vocabulary.yml" \
    --enc-depth 6 --dec-depth 2 --dim-emb 256 --transformer-dim-ffn 1536 --transformer-heads 8 \
    --transformer-ffn-activation relu --transformer-decoder-autoreg rnn --dec-cell ssru \
    --tied-embeddings-all --transformer-dropout 0.1 --label-smoothing 0.1 \
    --cost-type ce-mean-words --optimizer adam --learn-rate 3e-4 --clip-norm 1 \
    --mini-batch-words $((TOKENS / THREADS)) --mini-batch-round-up=false --max-length 1000 \
    --cpu-threads "$THREADS" --sync-sgd --seed 1 --after-batches $total --disp-freq "$EVERY"
}
count_marian() { "$PYTHON" "$RECIPES/parameters.py" "$1/model.npz"; }
decode_marian() {
  pymarian decode --models "$1/model.npz" --input "$subwords/test.de" --output "$3" \
    --vocabs "$subwords/vocabulary.yml" "$subwords/vocabulary.yml" --beam-size "$2" \
    --mini-batch 128 --maxi-batch 100 --maxi-batch-sort src --normalize 1 \
    --cpu-threads "$THREADS" --quiet-translation
}
