# Sourced by the recipes: stops at the first failure; finds the program, the corpus, what is done.
#
#   DATA      folder of the corpus
#   SCALE     full (the paper's sizes) or small (under half an hour on two cores)
#   OUT       prepared folders, runs, scores and tables go here
#   NMTFLEX   the program; "python -m nmtflex" where it is not on the path (no spaces in its path)
#   UPDATES   train every run for so many updates only, to try a recipe out
#   ALIGN     eflomal-align (pip install eflomal): links words, to guide the attention of recipes
#             that say so; without it attention is not guided
#   FAST      number format of the trainings whose figures were made in bfloat16 (see below)
set -euo pipefail

RECIPES=$(CDPATH='' cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RECIPE=$(basename "$0")
NMTFLEX=${NMTFLEX:-nmtflex}
PYTHON=${PYTHON:-python3}     # 3.11 or newer; the scripts beside this file need nothing else
SCALE=${SCALE:-full}
UPDATES=${UPDATES:-}
ALIGN=${ALIGN:-}
TRAINED=()                    # runs, for the table of trainings

stop() {
  echo "$RECIPE: $*" >&2
  exit 1
}

small() { [ "$SCALE" = small ]; }

trial=${UPDATES:+/trial-$UPDATES}
case $SCALE in
  full) OUT=${OUT:-runs$trial} ;;
  small) OUT=${OUT:-runs/small$trial} ;;
  *) stop "SCALE is full or small, not $SCALE" ;;
esac
# bfloat16 halves the time on a CPU with AVX-512 BF16 or AMX; without either, float32 is faster.
if [ -z "${FAST:-}" ]; then
  FAST=float32
  ! grep -qsE 'avx512_bf16|amx_bf16' /proc/cpuinfo || FAST=bfloat16
fi
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  stop "PYTHON=$PYTHON is no Python 3.11 or newer; set it to one"
NMTFLEX_VERSION=$($NMTFLEX --version) ||
  stop "$NMTFLEX does not run; install nmtflex, or set NMTFLEX to the command that runs it"
export RECIPE NMTFLEX NMTFLEX_VERSION

# need FILE...: each of the corpus's files must be there and whole, plain or compressed.
need() {
  [ -n "${DATA:-}" ] || stop "set DATA to the folder of the corpus; see the head of $0"
  local file files=()
  for file in "$@"; do files+=("$DATA/$file"); done
  "$PYTHON" "$RECIPES/corpus.py" need "${files[@]}"
}

# head_of SPLIT LINES LANGUAGE...: the first lines of a split, as $OUT/SPLIT-LINES.LANGUAGE.
head_of() {
  local language
  for language in "${@:3}"; do
    "$PYTHON" "$RECIPES/corpus.py" head "$DATA/$1.$language" "$2" "$OUT/$1-$2.$language"
  done
}

# link_words CORPUS LANGUAGE-OPTIONS LANGUAGE-OPTIONS: links between the words of the training text,
# as $OUT/CORPUS.links, by eflomal. Each side is its language and how nmtflex tokenize splits it.
link_words() {
  local side words links=$OUT/$1.links files=()
  [ ! -s "$links" ] || return 0
  for side in "${@:2}"; do
    words=$OUT/$1-words.${side%% *}
    "$PYTHON" "$RECIPES/corpus.py" head "$DATA/train.${side%% *}" 1000000000 "$words.raw"
    $NMTFLEX tokenize --quiet ${side#* } < "$words.raw" > "$words.tokens"
    "$PYTHON" "$RECIPES/corpus.py" solid "$words.tokens" "$words"
    files+=("$words")
  done
  "$ALIGN" -s "${files[0]}" -t "${files[1]}" -m 3 -f "$links.part" --overwrite
  mv "$links.part" "$links"
}

# step OUTPUT COMMAND...: an nmtflex command, left out where its output is there (see step.py).
step() { "$PYTHON" "$RECIPES/step.py" "$@"; }

# The steps that recipes are made of. A name stands for $OUT/NAME.

# prepare NAME OPTION...: preprocess.
prepare() { step "$OUT/$1" preprocess --out "$OUT/$1" "${@:2}"; }

# train RUN PREPARED OPTION...
train() {
  step "$OUT/$1" train "$OUT/$2" --run "$OUT/$1" "${@:3}"
  TRAINED+=("$1")
}

# finetune RUN BASE OPTION...
finetune() {
  step "$OUT/$1" finetune "$OUT/$2" --run "$OUT/$1" "${@:3}"
  TRAINED+=("$1")
}

# score NAME RUN OPTION...: eval, into $OUT/NAME.json.
score() { step --stdout "$OUT/$1.json" eval "$OUT/$2" --json "${@:3}"; }

# sweep NAME RUN OPTION...: thresholds, into $OUT/NAME.json, .csv and .png.
sweep() { step --stdout "$OUT/$1.json" sweep "$OUT/$2" --json --output "$OUT/$1" "${@:3}"; }

# value NAME KEY: a value of $OUT/NAME.json.
value() { "$PYTHON" "$RECIPES/value.py" "$OUT/$1.json" "$2"; }

# table TITLE < ROWS: what was measured beside the paper's figures (see table.py), then the
# trainings since the last table (see trainings.py).
table() {
  "$PYTHON" "$RECIPES/table.py" "$OUT" "$1${UPDATES:+ [a trial of $UPDATES updates]}"
  [ ${#TRAINED[@]} -eq 0 ] || "$PYTHON" "$RECIPES/trainings.py" "$OUT" "${TRAINED[@]}"
  TRAINED=()
}

# epochs N: how long to train; after --warmup, for which a trial is too short.
epochs() {
  if [ -n "$UPDATES" ]; then echo "--updates $UPDATES --warmup 0"; else echo "--epochs $1"; fi
}

# onto ATTENTION: options of a training that begins with the weights of global attention.
onto() {
  case $1 in
    local-p) echo "--window 10 --lr 3e-4 --warmup 100" ;;
    flexible) echo "--sigma 1.5 --lr 3e-4 --warmup 100" ;;
    memory | abc) echo "--K 32 --lr 1e-3 --warmup 100" ;; # all slots are new
    *) echo "--lr 3e-4 --warmup 100" ;;
  esac
}

# measure COMMAND...: its seconds and its memory.
measure() {
  if /usr/bin/time -f "" true 2> /dev/null; then   # GNU's
    /usr/bin/time -f "%e seconds, %U of the processor's; %M kB of memory at most (one process)" "$@"
  else
    time "$@"
  fi
}
