# Becomes the sshd of one connection to one host of the lab: called in the host's network namespace and in fresh mount and UTS
# namespaces. $1 folder, $2 name of the host. Nothing outside these namespaces and the folder is touched; stdin and stdout are
# the connection.
set -eu
lab=$1 name=$2
hostname "$name"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 755 /run/sshd
mount --bind "$lab/$name/home" /root
mount --bind "$lab/passwd" /etc/passwd
mount --bind "$lab/shadow" /etc/shadow
# /sys shows the devices of the namespace in which it was mounted; the control groups are those of the machine.
mkdir /run/cgroup
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
[ ! -d /sys/fs/cgroup ] || mount --rbind /run/cgroup /sys/fs/cgroup
umount -l /run/cgroup
cd /root
exec /usr/sbin/sshd -i -f "$lab/$name/sshd_config" -E "$lab/$name/log"
