#!/bin/sh
# Runs experiments/slurm/sweep.sbatch as users do, on a Slurm of one machine that this script starts
# and ends: munged, slurmctld and slurmd with sockets, ports, state and logs of their own in a
# temporary folder, so that a Slurm that is installed here is left alone. Needs root.
#
#   tests/slurm/check.sh BUILD
#
# The array's study holds what one sweep gives, record for record; and a job that its time limit stops
# goes on when it is submitted again.
set -eu
gepolab=$(cd "$1" && pwd)/gepolab
script=$(pwd)/experiments/slurm/sweep.sbatch
if [ "$(id -u)" != 0 ]; then echo "skipped: 1 of 1: a Slurm of its own needs root"; exit 0; fi
for p in munged slurmctld slurmd sbatch; do
  command -v $p > /dev/null || { echo "skipped: 1 of 1: no $p (apt-get install slurmctld slurmd slurm-client munge)"; exit 0; }
done
work=$(mktemp -d)
chmod 755 "$work"
pids=
finish() {
  code=$?
  for p in $pids; do kill "$p" 2> /dev/null || true; done
  [ $code = 0 ] || tail -n 20 "$work"/*.log >&2 2> /dev/null || true
  [ -n "$pids" ] && wait 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT

# --- a cluster of one machine ---
host=$(hostname -s)
dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 2> /dev/null
chmod 400 "$work/munge.key"
mkdir "$work/state" "$work/spool" "$work/study"
cat > "$work/slurm.conf" <<END
ClusterName=gepolab
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=36817
SlurmdPort=36818
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=5
OverTimeLimit=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$work/slurm.conf"
munged --foreground --force --socket="$work/munge.socket" --key-file="$work/munge.key" \
  --log-file="$work/munged.log" --pid-file="$work/munged.pid" --seed-file="$work/munged.seed" > /dev/null 2>&1 &
pids="$pids $!"
i=0
while [ ! -S "$work/munge.socket" ]; do
  i=$((i + 1)); [ $i -lt 100 ] || { echo "slurm: munged does not start"; exit 1; }
  sleep 0.1
done
slurmctld -D > "$work/slurmctld.out" 2>&1 &
pids="$pids $!"
slurmd -D > "$work/slurmd.out" 2>&1 &
pids="$pids $!"
i=0
until sinfo -h -o %T 2> /dev/null | grep -q idle; do
  i=$((i + 1)); [ $i -lt 300 ] || { echo "slurm: the node does not become idle: $(sinfo -h 2>&1 | head -1)"; exit 1; }
  sleep 0.2
done

# --- an array of jobs, and one sweep beside it ---
cd "$work/study"
export GEPOLAB="$gepolab"
small="steps=30 sweep.seed=[1,2] sweep.algorithm=[grpo,gepo,gspo] tune=null"
job=$(sbatch --parsable --array=0-3 --output="$work/study/job-%a.log" "$script" delay_sweep study.db $small)
i=0
while [ -n "$(squeue -h -j "$job" 2> /dev/null)" ]; do
  i=$((i + 1)); [ $i -lt 600 ] || { echo "slurm: the array does not end"; squeue; exit 1; }
  sleep 0.2
done
[ -e study.db ] || { cat job-*.log; echo "slurm: the array left no study.db"; exit 1; }
"$gepolab" status study.db --exit-code > /dev/null || { "$gepolab" status study.db; echo "slurm: cells are missing"; exit 1; }
"$gepolab" sweep delay_sweep -o one.db -q $small > /dev/null
for table in runs steps evals; do
  "$gepolab" export study.db -t $table -f csv | sort > array.csv
  "$gepolab" export one.db -t $table -f csv | sort > one.csv
  cmp array.csv one.csv || { echo "slurm: table $table of the array is another than that of one sweep"; exit 1; }
done
cells=$("$gepolab" export one.db -t runs -f csv | sed 1d | wc -l)

# --- a job that the signal before the time limit stops, and the same line again ---
long="steps=20000 sweep.seed=[1] sweep.algorithm=[gepo] sweep.cluster.max_delay=[600] tune=null checkpoint.every=200"
stopped=$(sbatch --parsable --array=0-0 --output="$work/study/stopped-%a.log" "$script" delay_sweep long.db $long)
i=0
until ls long.db.checkpoints.0/*/* > /dev/null 2>&1; do
  i=$((i + 1)); [ $i -lt 300 ] || { cat stopped-*.log; echo "slurm: no checkpoint is written"; exit 1; }
  sleep 0.1
done
scancel --signal=INT --batch "$stopped"
i=0
while [ -n "$(squeue -h -j "$stopped" 2> /dev/null)" ]; do
  i=$((i + 1)); [ $i -lt 300 ] || { echo "slurm: the job does not end on its signal"; exit 1; }
  sleep 0.1
done
if "$gepolab" status long.db --exit-code > /dev/null; then echo "slurm: the job was not stopped in its work"; exit 1; fi
again=$(sbatch --parsable --array=0-0 --output="$work/study/again-%a.log" "$script" delay_sweep long.db $long)
i=0
while [ -n "$(squeue -h -j "$again" 2> /dev/null)" ]; do
  i=$((i + 1)); [ $i -lt 900 ] || { echo "slurm: the job does not end"; exit 1; }
  sleep 0.2
done
grep -q "goes on from update\|checkpoint" again-0.log || { cat again-0.log; echo "slurm: the second job began anew"; exit 1; }
"$gepolab" status long.db --exit-code > /dev/null || { cat again-*.log; echo "slurm: the second job did not finish the study"; exit 1; }
echo "slurm: an array of 4 jobs gave the $cells runs of one sweep; a job stopped by its signal went on when it was submitted again"
