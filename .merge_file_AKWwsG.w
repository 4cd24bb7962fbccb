// commands.def - every subcommand, 
in the order in which help shows them.
//
// COMMAND(ID, 
name, 
arguments, 
least, 
most, 
own, 
summary, 
text)
//   arguments    what follows the options, 
for people
//   least, 
most  how many of them (most MANY = no limit)
//   own          true: the first argument ends the options (what follows is another program's)
//   text         paragraphs of help, 
separated by "\n"
COMMAND(RUN, 
run, 
"[--] COMMAND [ARGUMENT…]", 
1, 
MANY, 
true, 
"run a command with telemetry",
        "Starts an agent on every node of the job and an aggregator, 
runs COMMAND on the first node with the job's environment, 
passes signals on, 
ends "
        "everything when COMMAND ends and keeps its exit code. A .py file is run with python3. The recording is "
        "kept; a short summary says where.\n"
        "The nodes are those of --hosts or --hostfile (reached by ssh), 
of the Slurm or PBS job that it runs in, 
else this machine. "
        "In COMMAND {nodelist} (n1,n2), 
{hosts} (n1 n2), 
{hostfile} and {nnodes} stand for the nodes.\n"
        "While it runs, 
every program of the job can emit, 
and everybody who holds the job's token can ask "
        "over HTTP; `sonde status` says where.")
COMMAND(QUERY, 
query, 
"[EXPRESSION] [PATH…]", 
0, 
MANY, 
false, 
"ask a running job or a recording",
        "EXPRESSION is OpenTSDB's m= grammar: AGGREGATOR:[DOWNSAMPLE:][rate:]METRIC[{tag=filter,…}], 
as in "
        "'avg:1s-avg:loss{host=*}'. PATH is a recorded file, 
a folder of them, 
or the id of a running or recorded job. "
        "Without PATH: the running job (SONDE_JOB, 
else the newest), 
else the newest recording. "
        "Without --start and --end: all of it.")
COMMAND(STATUS, 
status, 
"", 
0, 
0, 
false, 
"show your running jobs", 
"Lists the jobs of this user on this machine that run now: id, 
command, 
since "
        "when, 
URL, 
points and dropped points.")
COMMAND(DETECT, 
detect, 
"WHAT [PATH…]", 
1, 
MANY, 
false, 
"find nodes, 
GPUs or ranks that are slower than the others",
        "WHAT is a metric, 
or an expression as of `sonde query` that gives one series a member (sum:10s-avg:rate:steps{rank=*}), 
or with --span the name of a span, 
whose "
        "durations count. Each member is compared with the others and with its own past; who takes --slowdown times as long, 
and that by more than the noise explains, 
for "
        "--persistence rounds running, 
is slow; who gives no more values while the others do is silent. PATH as in `sonde query`.\n"
        "The answer has a line for each: how many times as long it takes as the others, 
as in its own best time, 
and how many times the noise that is; since when and for how many rounds in "
        "all it has been slow. The exit code is 3 when somebody is slow or silent at the end.")
COMMAND(PROBE, 
probe, 
"[gpu|gpu:N|cpu|cpu:N]…", 
0, 
MANY, 
false, 
"time a small fixed piece of work on each GPU or core",
        "Some ten milliseconds of work, 
the same on every device of a kind, 
to tell slow ones (`sonde detect`): probe_compute_seconds, 
and probe_memory_seconds where the device has room. "
        "Without a word: all GPUs, 
and where there are none, 
all cores. NVIDIA's driver is all that is needed; nothing stays on the device. "
        "The lines are what `sonde put` takes. The exit code is 1 when a device gave no figure.")
COMMAND(PUT, 
put, 
"[NAME VALUE [KEY=VALUE…]]", 
0, 
MANY, 
false, 
"record a value, 
or lines from standard input",
        "Sends one point to the job's agent, 
or every line of standard input: plain (loss 0.5 rank=3), 
OpenTSDB "
        "(put loss 1700000000 0.5 rank=3), 
StatsD (steps:1|c) or Influx (train,rank=3 loss=0.5). The agent is that of the job "
        "it runs in (SONDE_SOCKET), 
else of the newest running job. Lines that the agent refuses are named, 
and the exit code is 1.")
COMMAND(ANNOTATE, 
annotate, 
"TEXT [KEY=VALUE…]", 
1, 
MANY, 
false, 
"record a note on the time line",
        "Records that something happened now, 
with a text and tags: sonde annotate 'rate halved' rank=3. Dashboards show it over their lines. "
        "The agent is that of the job it runs in (SONDE_SOCKET), 
else of the newest running job.")
COMMAND(INSPECT, 
inspect, 
"[PATH…]", 
0, 
MANY, 
false, 
"verify recordings and say what is in them",
        "Reads every block and checks its checksum: state, 
times, 
series, 
values, 
blocks, 
codecs, 
bytes in all and a value. PATH as in `sonde query`. "
        "The exit code is 1 when something is damaged or cannot be read.")
COMMAND(IMPORT, 
import, 
"FILE", 
1, 
1, 
false, 
"make a recording of a table",
        "wide-csv: a line of names, 
the first column nanoseconds since the epoch, 
every other column a series; gzip too. Writes DIR/HOST.sonde. Cells and rows "
        "that cannot be read are counted and left out.")
COMMAND(METRICS, 
metrics, 
"", 
0, 
0, 
false, 
"show the catalogue of built-in metrics", 
"Every built-in metric with its kind, 
unit, 
level and meaning, 
"
        "and the other names that it answers to; below them the sources that give nothing on this machine, 
and why.")
COMMAND(DOCTOR, 
doctor, 
"", 
0, 
0, 
false, 
"say what works on this machine and what does not",
        "One line a check: ok, 
no (works less well; what to do) or missing (level 2 needs it); also for each source of node metrics. The exit code is 1 when something is missing.")
COMMAND(AGENT, 
agent, 
"", 
0, 
0, 
false, 
"the process that records on a node (started by run)",
        "Records what programs emit and what the node does into DIR/HOST.sonde until it is told to end (SIGTERM, 
SIGINT). `sonde run` starts it; "
        "by hand it serves machines that have no job.")
COMMAND(NODE, 
node, 
"", 
0, 
0, 
false, 
"the process on a job's other nodes (started by run)",
        "Runs the agent of a node for a `sonde run` on another one, 
which starts it with srun or ssh and says on its standard input what it has to know. "
        "It ends when that is closed.")
COMMAND(AGGREGATOR, 
aggregator, 
"PATH…", 
1, 
MANY, 
false, 
"the process that answers over HTTP (started by run)",
        "Serves recordings, 
or the folder of a running job, 
until it is told to end (SIGTERM, 
SIGINT). Without --token-file it makes a token and prints the URL.")
COMMAND(REPLAY, 
replay, 
"[PATH…]", 
0, 
MANY, 
false, 
"serve recordings over HTTP, 
as if their jobs ran",
        "Serves recordings of any number of nodes and runs, 
with the same addresses and answers as a running job, 
until Ctrl-C. PATH is a recorded file, 
a "
        "folder of them, 
a folder of such folders, 
or the id of a recorded job; without PATH the newest recording. Where the recordings are "
        "of several jobs, 
every series carries the tag job.")
COMMAND(COMPLETION, 
completion, 
"bash|zsh|fish", 
1, 
1, 
false, 
"print the completion script of a shell",
        "bash: source <(sonde completion bash)\n"
        "zsh: sonde completion zsh > a folder of $fpath, 
as _sonde\n"
        "fish: sonde completion fish > ~/.config/fish/completions/sonde.fish")
COMMAND(HELP, 
help, 
"[COMMAND]", 
0, 
1, 
false, 
"explain sonde or one command", 
"The same as `sonde COMMAND --help`.")
COMMAND(VERSION, 
version, 
"", 
0, 
0, 
false, 
"print the version", 
"")
