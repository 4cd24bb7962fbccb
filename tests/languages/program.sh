# The program of test_languages.py in shell: program BASE, where BASE is in ns since the epoch. It
# has no cells, groups and completed spans, because the command line lacks these.
set -eu
base=$1
sonde put --parameters lr=0.01 optimizer=adam
for i in 1 2 3 4 5 6 7 8 9 10; do
    echo "loss $(awk "BEGIN { printf \"%.17g\", 1 / $i }") model=sin rank=3"
    echo "written $((1024 * i)) $((base + i * 1000000))"
done | sonde put
sonde span run epoch number=1 -- sh -c '
    for i in 1 2 3; do sonde span run step number=$i phase="warm up" -- true; done'
SONDE_SPAN=$(sonde span begin task of=none)
export SONDE_SPAN
part=$(sonde span begin part)
sonde span end "$part"
sonde span end
sonde annotate done file=ck-12
