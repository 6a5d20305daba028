# A machine of the lab becomes one with files of its own: called in its network namespace and in fresh mount, PID and UTS namespaces,
# before slurmd. /tmp and /run are its own; the folder of the lab stays where it is, wherever that is.
mount -t tmpfs -o mode=755 node /run && mkdir /run/lab /run/cgroup && mount --bind LAB /run/lab || exit
mount -t tmpfs -o mode=1777 node /tmp && mkdir -p LAB && mount --move /run/lab LAB || exit
# /sys shows the devices of the namespace in which it was mounted; the control groups are those of the machine.
mount --rbind /sys/fs/cgroup /run/cgroup && mount -t sysfs sysfs /sys || exit
[ ! -d /sys/fs/cgroup ] || mount --rbind /run/cgroup /sys/fs/cgroup || exit
umount -l /run/cgroup || exit
