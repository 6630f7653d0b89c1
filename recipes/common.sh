# Sourced by the recipes: stops at the first failure, and finds the corpus and the program.
set -euo pipefail

OUT=${OUT:-runs}              # prepared folders and runs go here
NMTFLEX=${NMTFLEX:-nmtflex}   # the program; "python -m nmtflex" where it is not on the path

# need FILE...: every file must be there, plain or compressed.
need() {
  local file
  for file in "$@"; do
    compgen -G "$file" > /dev/null || compgen -G "$file.*" > /dev/null || {
      echo "$(basename "$0"): $file is missing; set DATA to the folder of the corpus" >&2
      exit 1
    }
  done
}

# prepare FOLDER OPTION...: preprocess, unless the folder is there.
prepare() {
  local folder=$1
  shift
  [ -d "$folder" ] || $NMTFLEX preprocess --out "$folder" "$@"
}

TAUS=0.05,0.1,0.2,0.25,0.3,0.35,0.4,0.5,0.6,0.7,1,1.38,2,inf

# chosen_tau RUN TAUS [OPTION...]: the smallest threshold that loses at most 0.5 BLEU on validation
# data against none (or --baseline BLEU); nothing where every one loses more.
chosen_tau() {
  local run=$1 taus=$2
  shift 2
  $NMTFLEX sweep "$run" --split valid --beam 5 --tau "$taus" --within 0.5 "$@" --json |
    sed -n 's/.*"chosen": {"tau": "*\([0-9.e+-]*\|inf\)"*,.*/\1/p'
}

# valid_bleu RUN: its BLEU on validation data.
valid_bleu() {
  $NMTFLEX eval "$1" --split valid --beam 5 --json | sed -n 's/^{"bleu": \([0-9.e+-]*\),.*/\1/p'
}
