#!/bin/bash
# The first program of a guest: mounts what every system has, takes its name, addresses and keys from the kernel's command line
# (linerate.name, linerate.address, linerate.hosts, linerate.drives, linerate.key), admits the lab over ssh, and reports that on the console.
export PATH=/usr/sbin:/usr/bin DM_DISABLE_UDEV=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
ln -s /proc/self/fd /dev/fd
mkdir -p /dev/pts /dev/shm /sys/fs/cgroup /etc/dropbear /root/.ssh
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mkdir -p /run/lock /run/lvm /run/drbd
chmod 700 /root /root/.ssh

of() { local word; for word in $(</proc/cmdline); do [[ $word == linerate.$1=* ]] && echo "${word#*=}"; done; }
name=$(of name) address=$(of address) key=$(of key)
hostname "$name"
{
  echo "127.0.0.1 localhost"
  for pair in $(of hosts | tr , ' '); do echo "${pair#*:} ${pair%%:*}"; done
} >/etc/hosts
echo "ssh-ed25519 $key lab" >/root/.ssh/authorized_keys
chmod 600 /root/.ssh/authorized_keys

for module in virtio_pci virtio_rng virtio_net sd_mod virtio_scsi; do modprobe -q "$module"; done
# One drive after the other (the kernel scans nothing by itself), or their names would differ from boot to boot: the
# first drive of the lab's file is sda. Each is waited for, at most 20 s.
for ((number = 0; number < $(of drives); number++)); do
  echo "0 $number 0" >/sys/class/scsi_host/host0/scan
  for ((i = 0; i < 2000; i++)); do
    set -- /sys/block/sd*
    [ -e "$1" ] && [ $# -gt "$number" ] && break
    read -r -t 0.01 <> <(:)
  done
done
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip address add "$address/24" dev eth1 && ip link set eth1 up

dropbearkey -t ed25519 -f /etc/dropbear/key >/dev/null 2>&1
public=$(dropbearkey -y -f /etc/dropbear/key 2>/dev/null | grep '^ssh-ed25519' | cut -d ' ' -f 2)
# What it does stands on the console: an error about a lost connection shows why it ended.
dropbear -E -r /etc/dropbear/key -s -j -k -p 22 -P /run/dropbear.pid
echo "linerate-lab: ready $public"
# The first program must never end. It also reaps what was left by others.
while :; do sleep 1000; done
