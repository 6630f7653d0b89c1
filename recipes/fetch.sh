# Sourced by the recipes whose corpora may be fetched (FETCH=yes).
export REMEDY="set DATA to the folder of the corpus, or FETCH=yes to fetch it into DATA"

# fetch URL FILE: a gzip file. It takes its name when it is whole; until then FILE.part grows.
fetch() {
  local url=$1 file=$2 part=$2.part
  if [ -f "$file" ]; then return; fi
  mkdir -p "$(dirname "$file")"
  # Stopped after its last byte, it is whole, and curl would find nothing to go on with.
  if ! gzip -t "$part" 2> /dev/null; then
    echo "== $file: curl $url" >&2
    curl --fail --location --silent --show-error --retry 3 --continue-at - \
      --output "$part" "$url" ||
      stop "$url could not be fetched (curl's exit $?); run the recipe again to go on, or first" \
        "delete $part to begin anew"
    gzip -t "$part" 2> /dev/null ||
      stop "$part is no whole gzip file ($(wc -c < "$part") bytes of $url); delete it and run the" \
        "recipe again"
  fi
  mv "$part" "$file"
}

# unpack ARCHIVE NAME FILE: one file of a tar archive.
unpack() {
  if [ ! -f "$3" ]; then "$PYTHON" "$RECIPES/corpus.py" unpack "$1" "$2" "$3"; fi
}

# lines FILE N: it must have so many.
lines() { "$PYTHON" "$RECIPES/corpus.py" count "$1" "$2"; }

# test_set SET PAIR SIDE FILE: one side of a test set of WMT, which sacrebleu fetches, checking its
# MD5 sum.
test_set() {
  if [ -f "$4" ]; then return; fi
  echo "== $4: sacrebleu --test-set $1" >&2
  ${SACREBLEU:-sacrebleu} --test-set "$1" --language-pair "$2" --echo "$3" > "$4.part" ||
    stop "sacrebleu could not give $1 $2; pip install sacrebleu, delete its folder" \
      "~/.sacrebleu/$1 and run the recipe again"
  mv "$4.part" "$4"
}
