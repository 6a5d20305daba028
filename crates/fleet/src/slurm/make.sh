# On each node of a job: makes the folder of the path $0, for this account alone. It fails where something of
# that name is there: the name is to be seen in the list of processes, but whatever others put there is not
# used.
umask 077
mkdir -- "${0%/*}"
