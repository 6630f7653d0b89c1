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
