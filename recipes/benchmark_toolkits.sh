#!/usr/bin/env bash
# Training and decoding speed of nmtflex and of the toolkits that are installed, on the same files.
#
#   DATA=path/to/small_parallel_enja recipes/benchmark_toolkits.sh
#   DATA=... SIZE=512 FAIRSEQ=~/fairseq/bin/python recipes/benchmark_toolkits.sh
#   DATA=path/to/multi30k SIZE=tiny recipes/benchmark_toolkits.sh    # transformers: toolkits_tiny.sh
#
#   TOOLKITS  those to compare; ratios say how many times as fast the first is
#   FAIRSEQ, OPENNMT, EOLE, JOEYNMT, MARIAN   a Python that has it; PYTHON unless given
#   SIZE      yardstick: 128 embedding units, encoder 128 a direction, decoder 256; 512: all 512;
#             tiny: transformers, on other data
#   UPDATES   measured updates, after WARMUP (40) others; speeds are read every EVERY (20) updates
#   ROUNDS    trainings of each toolkit; in a round each has its turn
#   BEAMS     beam sizes of decoding the test set, 128 sentences at once; none if empty
#   THREADS   of each
#
# DATA is as small_parallel_en_ja.sh says; SIZE=tiny is described in toolkits_tiny.sh. Otherwise: words
# seen at least twice, one bidirectional LSTM layer, one LSTM decoder layer that is fed its last
# attentional vector, additive attention (fairseq has its own projected dot product), dropout 0.2,
# Adam 1e-3, clip 3, batches of 64 sentences, float32. nmtflex-bfloat16 trains in bfloat16,
# nmtflex-dot has fairseq's kind of score, nmtflex-flexible has flexible attention, nmtflex-unfed is
# not fed its last attentional vector, nmtflex-ssru has two SSRU layers in place of the LSTM decoder
# and its own learning rates, and nmtflex-int8 decodes in 8 bits what nmtflex has trained. OpenNMT-py
# and eole part the decoder's size among the encoder's directions: at SIZE=512 theirs have 256 units
# each. All count target tokens without padding, the end of sentence with them. nmtflex and fairseq
# time the search alone, nmtflex after a warm-up; the others reading too.
source "$(dirname "$0")/common.sh"
SIZE=${SIZE:-yardstick} UPDATES=${UPDATES:-200} WARMUP=${WARMUP:-40} EVERY=${EVERY:-20}
ROUNDS=${ROUNDS:-2} BEAMS=${BEAMS-1 5 20} THREADS=${THREADS:-2}
total=$((WARMUP + UPDATES))
case $SIZE in
  yardstick) embedding=128 encoder=128 decoder=256 ;;
  512) embedding=512 encoder=512 decoder=512 ;;
  tiny) ;;
  *) stop "SIZE is yardstick, 512 or tiny, not $SIZE" ;;
esac
known="nmtflex nmtflex-bfloat16 nmtflex-int8 nmtflex-dot nmtflex-flexible nmtflex-unfed nmtflex-ssru"
known+=" nmtflex-ssru-bfloat16 fairseq opennmt eole joeynmt"
corpus=({train,dev,test}.{en,ja})
if [ "$SIZE" = tiny ]; then
  known="nmtflex nmtflex-bfloat16 nmtflex-transformer marian fairseq"
  corpus=({train,val,test2016}.{de,en})
fi
need "${corpus[@]}"
TOOLKITS=${TOOLKITS:-$known}
for toolkit in $TOOLKITS; do
  [[ " $known " = *" $toolkit "* ]] || stop "TOOLKITS of SIZE=$SIZE are $known, not $toolkit"
done
# A PyTorch newer than the toolkits reads their checkpoints, which hold more than tensors.
export OMP_NUM_THREADS=$THREADS TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1
fairseq=${FAIRSEQ:-$PYTHON} opennmt=${OPENNMT:-$PYTHON} eole=${EOLE:-$PYTHON}
joeynmt=${JOEYNMT:-$PYTHON} marian=${MARIAN:-$PYTHON}

here=$OUT/toolkits-$SIZE
text=$here/text
rm -rf "$here"
mkdir -p "$text"
for file in "${corpus[@]}"; do
  found=$(compgen -G "$DATA/$file*" | head -n 1)
  case $found in
    *.gz) show="gzip -dc" ;;
    *.xz) show=xzcat ;;
    *.zst) show=zstdcat ;;
    *) show=cat ;;
  esac
  $show "$found" > "$text/$file"
done

# For each toolkit: prepare; train FOLDER; decode FOLDER BEAM OUTPUT. What they print is their log.

# train_own RUN NUMBER_FORMAT ATTENTION OPTION...
train_own() {
  $NMTFLEX train "$here/nmtflex" --run "$1" --dtype "$2" --attention "$3" \
    --embedding-size $embedding --encoder-size $encoder --dropout 0.2 --batch-sentences 64 \
    --updates $total --validate-every $total --valid-beam 1 --log-every "$EVERY" --device cpu \
    --threads "$THREADS" "${@:4}"
}
# train_lstm RUN NUMBER_FORMAT ATTENTION SCORE OPTION...
train_lstm() {
  train_own "$1" "$2" "$3" --score "$4" --decoder luong --decoder-size $decoder --lr 1e-3 --clip 3 \
    "${@:5}"
}
# train_ssru RUN NUMBER_FORMAT
train_ssru() {
  train_own "$1" "$2" global --encoder recurrent --decoder ssru --decoder-layers 2 --decoder-heads 4 \
    --decoder-ffn $((4 * embedding)) --pre-norm --lr 2e-3 --schedule cosine --warmup "$WARMUP" \
    --adam-beta2 0.98 --clip 1 --label-smoothing 0.1
}
# decode_nmtflex RUN BEAM OUTPUT OPTION...
decode_nmtflex() {
  $NMTFLEX bench "$1" --split test --beam "$2" --batch-sentences 128 --max-length 50 \
    --device cpu --dtype float32 --threads "$THREADS" --repeats 1 --json "${@:4}" > "$3"
}

# Every nmtflex-* reads and decodes as nmtflex does, unless it has functions of its own.
prepare_nmtflex() {
  [ -d "$here/nmtflex" ] ||
    $NMTFLEX preprocess --out "$here/nmtflex" --source-lang en --target-lang ja --min-frequency 2 \
      --train "$text/train" --valid "$text/dev" --test "$text/test"
}
train_nmtflex() { train_lstm "$1" float32 global additive; }
train_nmtflex-bfloat16() { train_lstm "$1" bfloat16 global additive; }
train_nmtflex-dot() { train_lstm "$1" float32 global general; }
train_nmtflex-flexible() { train_lstm "$1" float32 flexible additive; }
train_nmtflex-unfed() { train_lstm "$1" float32 global additive --no-input-feeding; }
train_nmtflex-ssru() { train_ssru "$1" float32; }
train_nmtflex-ssru-bfloat16() { train_ssru "$1" bfloat16; }
train_nmtflex-int8() { cp -r "$here/nmtflex.run.${1##*.}" "$1"; }
decode_nmtflex-int8() { decode_nmtflex "$@" --int8; }

prepare_fairseq() {
  "$fairseq" -m fairseq_cli.preprocess --source-lang en --target-lang ja --trainpref "$text/train" \
    --validpref "$text/dev" --testpref "$text/test" --destdir "$here/fairseq" \
    --thresholdsrc 2 --thresholdtgt 2 --padding-factor 1
}
train_fairseq() {
  "$fairseq" -m fairseq_cli.train "$here/fairseq" --save-dir "$1" --cpu --task translation \
    --arch lstm --encoder-bidirectional --encoder-layers 1 --decoder-layers 1 \
    --encoder-embed-dim $embedding --encoder-hidden-size $encoder \
    --decoder-embed-dim $embedding --decoder-hidden-size $decoder \
    --decoder-out-embed-dim $decoder --decoder-attention 1 --dropout 0.2 \
    --criterion cross_entropy --optimizer adam --lr 1e-3 --clip-norm 3 --batch-size 64 \
    --max-update $total --disable-validation --log-format json --log-interval "$EVERY"
}
decode_fairseq() {
  "$fairseq" -m fairseq_cli.generate "$here/fairseq" --path "$1/checkpoint_last.pt" --cpu \
    --task translation --gen-subset test --beam "$2" --batch-size 128 --max-len-b 50 > "$3"
}

prepare_opennmt() {
  mkdir -p "$here/opennmt"
  printf '%s\n' "data: {corpus: {path_src: $text/train.en, path_tgt: $text/train.ja}}" \
    "src_vocab: $here/opennmt/vocabulary.en" "tgt_vocab: $here/opennmt/vocabulary.ja" \
    "save_data: $here/opennmt" > "$here/opennmt/data.yaml"
  "$opennmt" -m onmt.bin.build_vocab -config "$here/opennmt/data.yaml" -n_sample -1
}
train_opennmt() {
  "$opennmt" -m onmt.bin.train -config "$here/opennmt/data.yaml" -save_model "$1/model" \
    -src_words_min_frequency 2 -tgt_words_min_frequency 2 -vocab_size_multiple 1 \
    -encoder_type brnn -decoder_type rnn -rnn_type LSTM -layers 1 -word_vec_size $embedding \
    -hidden_size $decoder -global_attention mlp -dropout 0.2 -optim adam -learning_rate 1e-3 \
    -max_grad_norm 3 -batch_type sents -batch_size 64 -train_steps $total -valid_steps 1000000 \
    -save_checkpoint_steps $total -report_every "$EVERY"
}
decode_opennmt() {
  "$opennmt" -m onmt.bin.translate -model "$1/model_step_$total.pt" -src "$text/test.en" \
    -output "$3" -beam_size "$2" -batch_type sents -batch_size 128 -max_length 50 \
    -length_penalty avg -report_time
}

prepare_joeynmt() {
  local side="level: word, voc_min_freq: 2, max_length: 100"
  mkdir -p "$here/joeynmt"
  cat > "$here/joeynmt/model.yaml" << YAML
name: benchmark
use_cuda: False
data:
  train: $text/train
  dataset_type: plain
  src: {lang: en, $side}
  trg: {lang: ja, $side}
training:
  optimizer: adam
  learning_rate: 0.001
  learning_rate_min: 0.0
  scheduling: exponential
  decrease_factor: 1.0
  clip_grad_norm: 3.0
  batch_size: 64
  batch_type: sentence
  epochs: 1000
  updates: $total
  validation_freq: $total
  logging_freq: $EVERY
  print_valid_sents: []
  overwrite: True
model:
  encoder:
    type: recurrent
    rnn_type: lstm
    bidirectional: True
    num_layers: 1
    embeddings: {embedding_dim: $embedding}
    hidden_size: $encoder
    dropout: 0.2
  decoder:
    type: recurrent
    rnn_type: lstm
    num_layers: 1
    embeddings: {embedding_dim: $embedding}
    hidden_size: $decoder
    dropout: 0.2
    hidden_dropout: 0.2
    input_feeding: True
    init_hidden: bridge
    attention: bahdanau
YAML
}
# joeynmt_config SPLIT MODEL_FOLDER BEAM
joeynmt_config() {
  awk -v line="  $1: $text/$1" '{ print } /^data:/ { print line }' "$here/joeynmt/model.yaml"
  printf '%s\n' "model_dir: $2" testing: "  beam_size: $3" "  beam_alpha: 1.0" "  batch_size: 128" \
    "  batch_type: sentence" "  max_output_length: 50" "  eval_metrics: []"
}
train_joeynmt() {
  joeynmt_config dev "$1" 1 > "$here/joeynmt/train.yaml"
  "$joeynmt" -m joeynmt train "$here/joeynmt/train.yaml" --skip-test
}
decode_joeynmt() {
  joeynmt_config test "$1" "$2" > "$here/joeynmt/test.yaml"
  "$joeynmt" -m joeynmt test "$here/joeynmt/test.yaml" --output-path "$3" && mv "$3.test" "$3"
}

prepare_eole() {
  mkdir -p "$here/eole"
  cat > "$here/eole/train.yaml" << YAML
data: {corpus: {path_src: $text/train.en, path_tgt: $text/train.ja}}
src_vocab: $here/eole/vocabulary.en
tgt_vocab: $here/eole/vocabulary.ja
src_words_min_frequency: 2
tgt_words_min_frequency: 2
vocab_size_multiple: 1
save_data: $here/eole
report_every: $EVERY
training:
  optim: adam
  learning_rate: 0.001
  max_grad_norm: 3
  dropout: [0.2]
  compute_dtype: fp32
  world_size: 0
  batch_type: sents
  batch_size: 64
  train_steps: $total
  valid_steps: 1000000
  save_checkpoint_steps: $total
model:
  architecture: custom
  embeddings: {word_vec_size: $embedding}
  encoder: {encoder_type: brnn, rnn_type: LSTM, layers: 1, hidden_size: $decoder}
  decoder: {decoder_type: rnn, rnn_type: LSTM, layers: 1, hidden_size: $decoder,
            global_attention: mlp}
YAML
  "$eole" -m eole.bin.main build_vocab -config "$here/eole/train.yaml" -n_sample -1
}
train_eole() {
  awk -v line="  model_path: $1" '{ print } /^training:/ { print line }' "$here/eole/train.yaml" \
    > "$1.yaml"
  "$eole" -m eole.bin.main train -config "$1.yaml"
}
decode_eole() {
  "$eole" -m eole.bin.main predict -model_path "$1" -src "$text/test.en" -output "$3" \
    -beam_size "$2" -batch_type sents -batch_size 128 -max_length 50 -length_penalty avg \
    -world_size 0 -report_time
}

[ "$SIZE" != tiny ] || source "$RECIPES/toolkits_tiny.sh"

version() {
  local name=$1
  case $name in
    nmtflex*) echo "${NMTFLEX_VERSION#nmtflex }" && return ;;
    opennmt) name=OpenNMT-py ;;
    marian) name=pymarian ;;
  esac
  "${!1}" -c "import importlib.metadata as m; print(m.version('$name'))" 2> "$here/$1.version.log"
}

# attempt TOOLKIT PART ROUND ARGUMENT...: let it prepare, train, count or decode, and keep what it
# prints; one that fails does no more, and TOOLKIT.failed says why.
attempt() {
  local failed=$here/$1.failed name=$1.$2$3 command=$2_$1
  [ ! -f "$failed" ] || return 0
  echo "$RECIPE: $name" >&2
  declare -F "$command" > /dev/null || command=$2_nmtflex
  "$command" "${@:4}" > "$here/$name.log" 2>&1 < /dev/null ||
    echo "failed, see $here/$name.log" > "$failed"
}

versions=()
for toolkit in $TOOLKITS; do
  if found=$(version "$toolkit"); then
    attempt "$toolkit" prepare ""
  else
    found=""
    echo "not installed" > "$here/$toolkit.failed"
  fi
  versions+=("$toolkit=$found")
done
for ((round = 1; round <= ROUNDS; round++)); do
  for toolkit in $TOOLKITS; do
    attempt "$toolkit" train ".$round" "$here/$toolkit.run.$round"
    if [ "$SIZE $round" = "tiny 1" ]; then
      attempt "$toolkit" count "" "$here/$toolkit.run.$round"
    fi
  done
  for beam in $BEAMS; do
    for toolkit in $TOOLKITS; do
      attempt "$toolkit" decode ".$beam.$round" \
        "$here/$toolkit.run.$round" "$beam" "$here/$toolkit.output.$beam.$round"
    done
  done
done

echo "$SIZE: $UPDATES updates after $WARMUP, $ROUNDS rounds, $THREADS threads"
echo
for one in "${versions[@]}"; do
  echo "$one $(cat "$here/${one%%=*}.failed" 2> /dev/null)"
done | "$PYTHON" "$RECIPES/toolkits.py" "$here" "$WARMUP" "$ROUNDS" $BEAMS
