# Sourced by aspec_en_ja.sh and aspec_en_ja_char.sh: the corpus, its licence and the papers' model.

# ASPEC is licensed, and no recipe fetches it.
[ -n "${DATA:-}" ] || stop "set DATA to the folder of ASPEC-JE, which needs a signed licence:" \
  "apply at https://jipsti.jst.go.jp/aspec/"
export REMEDY="set DATA to the folder of ASPEC-JE, from https://jipsti.jst.go.jp/aspec/"
# WAT scores KyTea's words; its own scores take jp-0.4.2-utf8-1.mod.
[ -f "${KYTEA_MODEL:-}" ] || stop "KYTEA_MODEL=${KYTEA_MODEL:-} is no file; set it to a model of" \
  "KyTea, from http://www.phontron.com/kytea/model.html"
KYTEA_MODEL=$(CDPATH='' cd -- "$(dirname "$KYTEA_MODEL")" && pwd)/$(basename "$KYTEA_MODEL")
# Before days of training, and not after them.
$NMTFLEX tokenize --wat ja --kytea-model "$KYTEA_MODEL" <<< "" > /dev/null ||
  stop "$NMTFLEX cannot cut text by KYTEA_MODEL=$KYTEA_MODEL; see the line above"
VALID=${VALID:-dev.txt}
TEST=${TEST:-test.txt}

# The first 1.5M pairs lie in the first two files; the small runs need the first alone.
if small; then
  TRAIN=${TRAIN:-train-1.txt}
  model=(--decoder bahdanau --embedding-size 128 --encoder-size 128 --decoder-size 128
    --bottleneck 64 --dropout 0)
  rate=1e-3 beam=5
else
  TRAIN=${TRAIN:-train-1.txt train-2.txt}
  model=(--decoder bahdanau --embedding-size 1000 --encoder-size 1000 --decoder-size 1000
    --bottleneck 600 --dropout 0)
  rate=1e-4 beam=20
fi
need $TRAIN "$VALID" "$TEST"

# aspec NAME OPTION...: preprocess ASPEC's own files.
aspec() {
  local file files=()
  for file in $TRAIN; do files+=(--train "$DATA/$file"); done
  prepare "$1" --format aspec --source-lang en --target-lang ja "${files[@]}" \
    --valid "$DATA/$VALID" --test "$DATA/$TEST" "${@:2}"
}

# wat NAME RUN OPTION...: BLEU and RIBES by WAT's procedure, CPS and seconds, on the test data.
# Unknown words are UNK as in the papers, one word: KyTea would cut <unk> into three.
wat() {
  score "$1" "$2" --split test --beam $beam --unk UNK --wat ja --kytea-model "$KYTEA_MODEL" \
    "${@:3}"
}
