#!/bin/bash
# Waits before and after a program of a guest, where a test asks for it, for a word: `go` goes on, any other one ends here.
name=${0##*/} words="${0##*/} $*"
stand() {
  [[ -e /run/gate/$1 && $words == $(</run/gate/$1) ]] || return 0
  # Open before anyone knows that it stands: a word that comes then is not lost.
  exec 9<>/run/gate/word
  local word=go
  # One of those that arrive at once.
  mv /run/gate/$1 /run/gate/stands 2>/dev/null && read -r -u 9 word
  exec 9>&-
  [[ $word == go ]] || exit 1
}
stand before
/run/real/"$name" "$@"
code=$?
stand behind
exit $code
