# Functions for the guests in which programs are killed; read by every command of the test.
# Puts gates in front of programs.
gates() {
  mkdir -p /run/gate /run/real
  mkfifo /run/gate/word /run/gate/nothing
  local path real
  for path; do
    real=$(readlink -f "$path")
    if [[ $real == "$path" ]]; then mv "$path" /run/real/; else ln -s "$real" /run/real/"${path##*/}" && rm "$path"; fi
    cp /run/gate.sh "$path"
  done
}
# Processes of the node program; a fork for each process would take most of an emulated CPU.
nodes() {
  ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's|.* /proc/\([0-9]*\)/exe -> .*linerate-node.*|\1|p'
}
# Whether a command holds within some seconds; the caller asks again.
soon() {
  local i
  for ((i = 0; i < 40; i++)); do
    "$@" && { echo yes; return 0; }
    read -r -t 0.05 <>/run/gate/nothing || true
  done
  echo no
}
stands() { [[ -e /run/gate/stands ]]; }
gone() { [[ -z $(nodes) ]]; }
# So many builds stand here, and no step of them runs.
whole() {
  local builds=(/var/lib/linerate/builds/*.json)
  [[ -e ${builds[0]} ]] && ! grep -q '"whole": false' "${builds[@]}"
}
syncs() { grep -q SyncSource /proc/drbd; }
# A volume of LVM copies its first half to the second.
fills() { dmsetup status vg0-data 2>/dev/null | grep -q resync; }
